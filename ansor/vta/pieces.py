"""Splits the results of the last tile into pieces: while one is stored, the next is computed. Stores of other tiles overlap with the next tile instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ansor.ir.linear import Var
from ansor.vta.nests import Nest

PIECE = 128
"""Elements of a piece: enough to make the overhead of instructions small, few enough to leave little to store after the last computation."""


def pieces_of(nest: Nest) -> Iterator[Nest]:
    """Nests that together do what this one does, each for about `PIECE` neighbouring elements of the output."""
    counts = nest.counts()
    whole = prod(counts.values())
    loops = [var for index in nest.store.index for var in nest.index(index).steps if counts[var] > 1]
    if whole < 2 * PIECE or not loops:
        yield nest
        return
    var = loops[0]
    inside = whole // counts[var]
    step = max(1, PIECE // inside)
    for first in range(0, counts[var], step):
        piece = _part(nest, var, first, step)
        yield from pieces_of(piece) if inside >= 2 * PIECE else (piece,)


def _part(nest: Nest, var: Var, first: int, count: int) -> Nest:
    block = nest.along.get(var, 1)
    extent = min(count * block, nest.extents[var] - first * block)
    return replace(nest, extents={**nest.extents, var: extent}, starts={**nest.starts, var: nest.starts.get(var, 0) + first * block})
