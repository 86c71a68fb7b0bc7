"""Features of remainders, if tiles do not divide an axis.

The loops cover more than the axis, the last tile is shorter and has its own code with fewer vectors, and the innermost loop ends within a vector. How
often each happens depends on remainders, which no other feature shows: sizes are given by their logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.cost_model.nest import Nest
from ansor.ir.columns import Row, anywhere, ceil, choose, larger, log2, magnitude, row
from ansor.ir.linear import Var
from ansor.ir.loops import Guard


@dataclass(frozen=True, eq=False)
class Remainders:
    """Totals over all axes of a statement that tiles do not divide.

    excess: log2 of all iterations per useful one; inner_excess: the same for the innermost loop of each axis, taken alone; cut: the greatest share of an
    axis in its last, shorter tile.
    """

    excess: Row
    inner_excess: Row
    cut: Row


def remainders_of(nest: Nest) -> Remainders:
    """What a statement's guards cut off."""
    excess: Row = 0.0
    inner_excess: Row = 0.0
    cut: Row = 0.0
    for guard in nest.store.guards:
        if guard.high is None or not anywhere(guard.needed):
            continue
        end = larger(row(guard.high), 1.0)
        covered, tile, inner = _walk(nest, guard)
        excess = excess + choose(guard.needed, log2(larger(covered / end, 1.0)), 0.0)
        inner_excess = inner_excess + choose(guard.needed, log2(ceil(end / inner) * inner / end), 0.0)
        cut = larger(cut, choose(guard.needed, (end % tile) / end, 0.0))
    return Remainders(excess, inner_excess, cut)


def _walk(nest: Nest, guard: Guard) -> tuple[Row, Row, Row]:
    """For the value that a guard bounds: how far the loops take it, its greatest step (that of the outermost loop, the length of a whole tile),
    and the extent of the loop with step 1."""
    covered: Row = 1.0
    tile: Row = 1.0
    inner: Row = 1.0
    for atom, coefficient in guard.value.terms:
        level = nest.level.get(atom) if isinstance(atom, Var) else None
        if level is None:
            continue
        step, extent, real = magnitude(row(coefficient)), nest.extents[level], nest.real[level]
        covered = covered + step * (extent - 1.0)
        tile = choose(real, larger(tile, step), tile)
        inner = choose((step == 1.0) & real, extent, inner)
    return covered, tile, inner
