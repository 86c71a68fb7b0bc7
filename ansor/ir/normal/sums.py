"""Integer index arithmetic as values: sums of multiples of axes, quotients and remainders, in a fixed order, so that equal sums compare equal.

    ((i * 14 + j) // 14) * 14 + (i * 14 + j) % 14     is the sum     14 i + j
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd
from typing import cast

from ansor.te.expr import Axis, Expr
from ansor.te.interval import Interval


@dataclass(frozen=True, slots=True)
class Loop:
    """An axis, by its place among those of its declaration. `values`: the least and the greatest."""

    place: int
    values: Interval
    axis: Axis = field(compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.place, 0)


@dataclass(frozen=True, slots=True)
class Quotient:
    """A sum divided by a positive number, rounded down."""

    of: Sum
    by: int

    @property
    def key(self) -> tuple[object, ...]:
        return (_place(self.of), 1, self.of.key, self.by)

    @property
    def values(self) -> Interval:
        low, high = self.of.values
        return low // self.by, high // self.by


@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder of that division, at least 0."""

    of: Sum
    by: int

    @property
    def key(self) -> tuple[object, ...]:
        return (_place(self.of), 2, self.of.key, self.by)

    @property
    def values(self) -> Interval:
        return 0, min(self.by - 1, max(self.of.values[1], 0)) if self.of.values[0] >= 0 else self.by - 1


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else that depends only on loops, identified by its text."""

    text: str
    values: Interval
    expr: Expr = field(compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        return (_LAST, 3, self.text)


_LAST = 1 << 30


def _place(value: Sum) -> int:
    """The place of the first axis in a sum: sums are ordered by their axes."""
    return min((cast(int, part.key[0]) for part, _ in value.terms), default=_LAST)


Part = Loop | Quotient | Remainder | Other


@dataclass(frozen=True, slots=True)
class Sum:
    """`const + sum(coefficient * part)`; parts are sorted by key, without repeats or zero coefficients."""

    terms: tuple[tuple[Part, int], ...] = ()
    const: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        return (*((part.key, coefficient) for part, coefficient in self.terms), ((_LAST,), self.const))

    @property
    def values(self) -> Interval:
        """Least and greatest value, both inclusive: a superset of the values really taken."""
        low = high = self.const
        for part, coefficient in self.terms:
            ends = part.values[0] * coefficient, part.values[1] * coefficient
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __add__(self, other: Sum) -> Sum:
        return summed((*self.terms, *other.terms), self.const + other.const)

    def __mul__(self, factor: int) -> Sum:
        return summed(((part, coefficient * factor) for part, coefficient in self.terms), self.const * factor)

    def __sub__(self, other: Sum) -> Sum:
        return self + other * -1


def summed(terms: Iterable[tuple[Part, int]], const: int = 0) -> Sum:
    """The sum of these terms. A quotient and its matching remainder become their dividend; an axis that is always 0 stays only if it is the only part."""
    merged: dict[Part, int] = {}
    for part, coefficient in terms:
        merged[part] = merged.get(part, 0) + coefficient
    for rest in [part for part in merged if isinstance(part, Remainder)]:
        whole, count = _single(quotient(rest.of, rest.by)), merged[rest]
        if count and whole is not None and merged.get(whole) == count * rest.by:
            left = [(part, c) for part, c in merged.items() if part not in (rest, whole)]
            return summed((*left, *((rest.of * count).terms)), const + rest.of.const * count)
    kept = sorted(((part, coefficient) for part, coefficient in merged.items() if coefficient), key=lambda term: term[0].key)
    moving = [(part, coefficient) for part, coefficient in kept if part.values != (0, 0)]
    return Sum(tuple(moving) or tuple((part, 1) for part, _ in kept[:1]), const)


def of_part(part: Part) -> Sum:
    """The part itself as a sum. An axis stays an axis even if it has only one value."""
    low, high = part.values
    return Sum((), low) if low == high and not isinstance(part, Loop) else Sum(((part, 1),))


def quotient(value: Sum, by: int) -> Sum:
    """`value // by`, simplified as far as the ranges of the axes allow; `by` is positive."""
    return _divided(value, by)[0]


def remainder(value: Sum, by: int) -> Sum:
    """`value % by`, simplified as far as the ranges of the axes allow; `by` is positive."""
    low, high = value.values
    if low >= 0 and high < by:
        return value
    inner = [(part, c) for part, c in value.terms if isinstance(part, Remainder) and part.by % by == 0]  # (a % mn + b) % n = (a + b) % n
    for part, c in inner:
        value = value + (part.of * c - Sum(((part, c),)))
    return remainder(value, by) if inner else _divided(value, by)[1]


def depth(value: Sum) -> int:
    """The depth of nested quotients and remainders."""
    return max((1 + depth(part.of) for part, _ in value.terms if isinstance(part, Quotient | Remainder)), default=0)


def _divided(value: Sum, by: int) -> tuple[Sum, Sum]:
    """Quotient and remainder. Multiples of the divisor are taken out; what is smaller than a common step does not affect the quotient."""
    whole = Sum(tuple((part, c // by) for part, c in value.terms if c % by == 0), value.const // by)
    rest = Sum(tuple((part, c) for part, c in value.terms if c % by), value.const % by)
    low, high = rest.values
    if low // by == high // by:
        return whole + Sum((), low // by), rest - Sum((), low // by * by)
    coarse, fine, step = _steps(rest, by)
    if not fine.terms and step == 1:
        return whole + _quotient_of(rest, by), _remainder_of(rest, by)
    inner, left = _divided(coarse, by // step)
    return whole + inner, left * step + fine


def _steps(value: Sum, by: int) -> tuple[Sum, Sum, int]:
    """`value` as coarse * step + fine with fine in [0, step), where step divides the divisor.

    8 a + b with b < 8, divided by 32   ->   a, b, 8
    """
    terms = sorted(value.terms, key=lambda term: (-abs(term[1]), term[0].key))
    for count in range(1, len(terms) + 1):
        step = gcd(by, *(c for _, c in terms[:count]))
        if step == 1:
            break
        fine = summed(terms[count:], value.const % step)
        low, high = fine.values
        if low >= 0 and high < step:
            return summed(((part, c // step) for part, c in terms[:count]), value.const // step), fine, step
    return value, Sum(), 1


def _single(value: Sum) -> Part | None:
    """The single part that a sum consists of, None for other sums."""
    return value.terms[0][0] if len(value.terms) == 1 and value.terms[0][1] == 1 and value.const == 0 else None


def _quotient_of(value: Sum, by: int) -> Sum:
    part = _single(value)
    if isinstance(part, Quotient):  # (a // m) // n
        return quotient(part.of, part.by * by)
    if isinstance(part, Remainder) and part.by % by == 0:  # (a % mn) // n
        return remainder(quotient(part.of, by), part.by // by)
    return of_part(Quotient(value, by))


def _remainder_of(value: Sum, by: int) -> Sum:
    part = _single(value)
    if isinstance(part, Remainder) and part.by % by == 0:  # (a % mn) % n
        return remainder(part.of, by)
    return of_part(Remainder(value, by))
