"""What is left over where tiles do not divide an axis.

The loops cover more than there is, the last tile is shorter and runs in code of its own with fewer vectors, and the innermost loop ends within a vector. Which
of that happens how often hangs on remainders, which no other feature shows: sizes are told by their logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.cost_model.nest import Nest
from ansor.ir.columns import Row, anywhere, ceil, choose, larger, log2, magnitude, row
from ansor.ir.linear import Var
from ansor.ir.loops import Guard


@dataclass(frozen=True, eq=False)
class Rests:
    """Over all axes of a statement that tiles do not divide.

    excess: log2 of iterations, of those that do something; inner_excess: the same of the innermost loop of each axis, were it alone; cut: share of an axis that
    lies in its last, shorter tile, the greatest of all.
    """

    excess: Row
    inner_excess: Row
    cut: Row


def rests_of(nest: Nest) -> Rests:
    """What the guards of a statement cut off."""
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
    return Rests(excess, inner_excess, cut)


def _walk(nest: Nest, guard: Guard) -> tuple[Row, Row, Row]:
    """Of the value that a guard holds below its end: how far the loops take it, its greatest step (that of the outermost loop, the length of a whole tile),
    and the extent of the loop that takes it by single steps."""
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
