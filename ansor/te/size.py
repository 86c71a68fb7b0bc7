"""Sizes that are not known while a declaration is written.

A size stands for a number and remembers how it was computed. Declarations use it like an integer. Each decision that they make by comparing it, or by using
its number, is recorded as a guard: the declaration has no program for sizes with which a decision would come out differently.
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
"""The numbers that sizes stand for in turn. Primes, so that they rarely equal other numbers or their multiples."""

if TYPE_CHECKING:
    Integer = int  # typed as one
else:
    Integer = object  # whatever uses its number has to ask for it

Values = Mapping[str, int]
_fresh = itertools.count()


@dataclass(frozen=True, eq=False)
class Guard:
    """A decision of a declaration: a comparison, and its outcome."""

    compare: Callable[[int, int], bool]
    left: object
    right: object
    outcome: bool

    def check(self, values: Values) -> None:
        """Raise DeclarationError if the comparison would come out differently."""
        if self.compare(value_of(self.left, values), value_of(self.right, values)) != self.outcome:
            given = ", ".join(f"{name.partition('#')[0]} = {value}" for name, value in values.items())
            took = f"{self.compare.__name__}({self.left}, {self.right}) is {self.outcome}"
            raise DeclarationError(f"asked to run with {given}; it was declared as if {took} for all sizes: declare it with numbers in place of these")


@dataclass(frozen=True, eq=False)
class Size(Integer):
    """A whole number that is not known yet. stands_as: the number used for it meanwhile; guards: the decisions made with it; identity: equal for equal sizes;
    key: the name under which its value is given, "" for a computed size."""

    text: str
    stands_as: int
    evaluate: Callable[[Values], int]
    guards: list[Guard]
    identity: str
    key: str = ""

    def compared(self, compare: Callable[[int, int], bool], other: object) -> bool:
        """The comparison, with the number that it stands for; recorded as a guard."""
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
        """The number that it stands for, and must be from now on."""
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
    """The number of a size, without a guard: for schedules, whose steps hold for any size."""
    return size.stands_as if isinstance(size, Size) else size


def value_of(size: object, values: Values) -> int:
    """The value of a size, or of any number, for these values of the sizes."""
    return size.evaluate(values) if isinstance(size, Size) else operator.index(size)  # type: ignore[arg-type]  # a number


def open_size(name: str) -> Size:
    """A new size, distinct from all others of the same name."""
    number = next(_fresh)
    key = f"{name}#{number}"
    return Size(name, STANDS_FOR[number % len(STANDS_FOR)], lambda values: values[key], [], key, key)
