"""Comparisons of indices in one form: a sum without a constant or common factor, its first coefficient positive, `<` or `>=` a number.

    1 - h <= 0,   h > 0,   not (h < 1),   2 * h >= 2     are all     h >= 1
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ansor.ir.normal.sums import Quotient, Sum

OPPOSITE = {"ge": "lt", "lt": "ge", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`value op bound`, where op is one of ge, lt, eq, ne."""

    value: Sum
    op: str
    bound: int

    @property
    def key(self) -> tuple[object, ...]:
        return (self.value.key, ("ge", "lt", "eq", "ne").index(self.op), self.bound)

    @property
    def opposite(self) -> Comparison:
        """The negation of this comparison."""
        return Comparison(self.value, OPPOSITE[self.op], self.bound)


def compared(op: str, left: Sum, right: Sum) -> Comparison | bool:
    """`left op right`; True or False where the ranges of the axes decide it."""
    value = left - right
    if op in ("gt", "le"):
        return _ordered(value, "ge" if op == "gt" else "lt", 1)
    return _ordered(value, op, 0) if op in ("ge", "lt") else _equal(value, op)


def _ordered(value: Sum, op: str, bound: int) -> Comparison | bool:
    low, high = value.values
    if low >= bound or high < bound:
        return (low >= bound) == (op == "ge")
    value, bound = Sum(value.terms), bound - value.const
    common = gcd(*(c for _, c in value.terms))
    value, bound = Sum(tuple((part, c // common) for part, c in value.terms)), -(-bound // common)
    first, count = value.terms[0]
    if count < 0:
        return _ordered(value * -1, "lt" if op == "ge" else "ge", 1 - bound)
    if len(value.terms) == 1 and count == 1 and isinstance(first, Quotient):
        return _ordered(first.of - Sum((), bound * first.by), op, 0)
    return Comparison(value, op, bound)


def _equal(value: Sum, op: str) -> Comparison | bool:
    low, high = value.values
    if low == high == 0:
        return op == "eq"
    common = gcd(*(c for _, c in value.terms)) if value.terms else 1
    if low > 0 or high < 0 or value.const % common:
        return op == "ne"
    sign = -1 if value.terms[0][1] < 0 else 1
    parts = Sum(tuple((part, c // common * sign) for part, c in value.terms))
    bound = -value.const // common * sign
    least, greatest = parts.values
    if bound not in (least, greatest):
        return Comparison(parts, op, bound)
    at_end = Comparison(parts, "ge", bound) if bound == greatest else Comparison(parts, "lt", bound + 1)
    return at_end if op == "eq" else at_end.opposite


def joined(tests: list[Comparison]) -> list[Comparison]:
    """Conditions that must all hold, in order, each bound once."""
    ends: dict[tuple[Sum, str], int] = {}
    for test in tests:
        if test.op in ("ge", "lt"):
            known = ends.get((test.value, test.op))
            tighter = test.bound if known is None else max(known, test.bound) if test.op == "ge" else min(known, test.bound)
            ends[test.value, test.op] = tighter
    kept = {Comparison(value, op, bound) for (value, op), bound in ends.items()} | {test for test in tests if test.op in ("eq", "ne")}
    return sorted(kept, key=lambda one: one.key)
