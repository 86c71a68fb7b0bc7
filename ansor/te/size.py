"""Sizes that are not known while a declaration is written.

A size stands for a number, and remembers how it was computed. Declarations do with it what they do with integers. What they decide by comparing it, or by
taking it for the number, is noted: for sizes by which they had decided otherwise, there is no program of that declaration.
"""

from __future__ import annotations

import itertools
import numbers
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.errors import DeclarationError

STANDS_FOR = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049)
"""What sizes stand as, in turn. Primes, so that they rarely are equal to other numbers, or multiples of them."""

if TYPE_CHECKING:
    Integer = int  # as good as one
else:
    Integer = object  # what takes it for the number has to ask it

Values = Mapping[str, int]
_fresh = itertools.count()


@dataclass(frozen=True, eq=False)
class Guard:
    """What a declaration was decided by: a comparison, and how it came out."""

    compare: Callable[[int, int], bool]
    left: object
    right: object
    outcome: bool

    def check(self, values: Values) -> None:
        """Raises DeclarationError when it would come out otherwise."""
        if self.compare(value_of(self.left, values), value_of(self.right, values)) != self.outcome:
            given = ", ".join(f"{name.partition('#')[0]} = {value}" for name, value in values.items())
            took = f"{self.compare.__name__}({self.left}, {self.right}) is {self.outcome}"
            raise DeclarationError(f"asked to run with {given}; it was declared as if {took} for all sizes: declare it with numbers in place of these")


@dataclass(frozen=True, eq=False)
class Size(Integer):
    """A whole number that is not known yet. stands_as: what it is taken for meanwhile; guards: what was decided by it; identity: equal for equal sizes;
    key: what its value is known by, "" for one that was computed."""

    text: str
    stands_as: int
    evaluate: Callable[[Values], int]
    guards: list[Guard]
    identity: str
    key: str = ""

    def compared(self, compare: Callable[[int, int], bool], other: object) -> bool:
        """The comparison with the number that it stands as, which is noted."""
        if not isinstance(other, int | Size):
            return NotImplemented  # type: ignore[no-any-return]  # as Python asks
        if isinstance(other, Size) and other.identity == self.identity:
            return compare(0, 0)
        outcome = compare(self.stands_as, other.stands_as if isinstance(other, Size) else other)
        self.guards.append(Guard(compare, self, other, outcome))
        return outcome

    def __bool__(self) -> bool:
        return self.compared(operator.ne, 0)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __index__(self) -> int:
        """The number that it stands as, and has to be from here on."""
        self.compared(operator.eq, self.stands_as)
        return self.stands_as

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __neg__(self) -> int:
        return 0 - self

    def __truediv__(self, other: float) -> float:
        return self.__index__() / other

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _arithmetic(name: str, symbol: str) -> None:
    function: Callable[[int, int], int] = getattr(operator, name)

    def of_two(left: Size | int, right: Size | int, guards: list[Guard]) -> Size:
        stand_ins = (one.stands_as if isinstance(one, Size) else one for one in (left, right))
        identity = " ".join(one.identity if isinstance(one, Size) else str(one) for one in ("(", left, symbol, right, ")"))
        text, value = f"({left} {symbol} {right})", function(*stand_ins)
        return Size(text, value, lambda values: function(value_of(left, values), value_of(right, values)), guards, identity)

    setattr(Size, f"__{name}__", lambda self, other: of_two(self, other, self.guards) if isinstance(other, int | Size) else NotImplemented)
    setattr(Size, f"__r{name}__", lambda self, other: of_two(other, self, self.guards) if isinstance(other, int | Size) else NotImplemented)


def _comparison(name: str) -> None:
    setattr(Size, f"__{name}__", lambda self, other: self.compared(getattr(operator, name), other))


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    _arithmetic(_name, _symbol)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)
numbers.Integral.register(Size)


def stand_in(size: int) -> int:
    """What a size is taken for where nothing is decided by it for good: in schedules, whose steps hold for any size."""
    return size.stands_as if isinstance(size, Size) else size


def value_of(size: object, values: Values) -> int:
    """A size, or any number, when the sizes have these values."""
    return size.evaluate(values) if isinstance(size, Size) else operator.index(size)  # type: ignore[arg-type]  # a number


def open_size(name: str) -> Size:
    """A size of its own, whatever its name."""
    number = next(_fresh)
    key = f"{name}#{number}"
    return Size(name, STANDS_FOR[number % len(STANDS_FOR)], lambda values: values[key], [], key, key)
