"""The region of a tensor that several reads touch: its start and length, computed from the indices."""

from __future__ import annotations

from ansor.ir.columns import Flag, Int, choose, larger, smaller
from ansor.ir.linear import Atom, Linear, atom_variables, bounds, is_opaque

Span = tuple[Linear, Int, Int] | None


def span_of(index: Linear, outside: set[int]) -> Span:
    """The part of an index fixed by the outer loops, and the least and greatest value of the rest; None when it depends on data."""
    fixed: list[tuple[Atom, Int]] = []
    moving: list[tuple[Atom, Int]] = []
    for atom, coefficient in index.terms:
        inner = list(atom_variables(atom))
        is_fixed = not is_opaque(atom) and inner and all(id(var) in outside for var in inner)
        (fixed if is_fixed else moving).append((atom, coefficient))
    found = bounds(Linear(tuple(moving), index.const))
    return None if found is None else (Linear(tuple(fixed)), *found)


def hull(spans: list[Span], extent: int) -> tuple[Linear, Int]:
    """One region that covers all reads of a dimension: its start and its length (at most the dimension)."""
    first = spans[0]
    if first is None:
        return Linear(), extent
    base, low, high = first
    together: Flag = True
    for other in spans[1:]:
        if other is None or not _same_atoms(base, other[0]):
            return Linear(), extent
        for (_, a), (_, b) in zip(base.terms, other[0].terms, strict=True):
            together = together & (a == b)
        low, high = smaller(low, other[1]), larger(high, other[2])
    span = high - low + 1
    part = together & (span < extent)
    keep = choose(part, 1, 0)
    return (base + low) * keep, choose(part, span, extent)


def _same_atoms(a: Linear, b: Linear) -> bool:
    """True when both are sums over the same loops; their coefficients may differ in some or all rows."""
    return len(a.terms) == len(b.terms) and all(x is y for (x, _), (y, _) in zip(a.terms, b.terms, strict=True))
