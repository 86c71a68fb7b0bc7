"""The loops around a statement, with numbers for one program or a population.

A *boundary* b splits the loops of a statement into those outside, 0 .. b - 1, and those inside, b .. count - 1. Boundary 0 is the whole program, the last
one a single iteration. Loops whose extent is 1 in every program are left out: no feature depends on them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from ansor.ir.columns import Flag, Row, anywhere, at_least, row
from ansor.ir.linear import Var
from ansor.ir.loops import For, Store


@dataclass(frozen=True, eq=False)
class Iterations:
    """Products of the extents of the loops inside and outside, by boundary."""

    inside: tuple[Row, ...]
    outside: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Nest:
    """path: every loop around the store, outermost first; loops: those kept; level: variable -> position among the kept.

    kept_before: per depth of `path`, how many kept loops are outside, which turns a depth into a boundary.
    extents, real: per loop, its length, and whether that is above 1; counts: of iterations.
    found: cached results about the statement that do not depend on the rest of the program.
    """

    store: Store
    path: tuple[For, ...]
    loops: tuple[For, ...]
    level: dict[Var, int]
    kept_before: tuple[int, ...]
    extents: tuple[Row, ...]
    real: tuple[Flag, ...]
    counts: Iterations
    found: dict[Hashable, Any] = field(init=False, default_factory=dict)

    @property
    def iterations(self) -> Row:
        """Iterations of all loops."""
        return self.counts.inside[0]


def nest_of(path: tuple[For, ...], store: Store) -> Nest:
    """The loops of `path` around `store`."""
    loops = tuple(loop for loop in path if anywhere(loop.var.extent > 1))
    level = {loop.var: k for k, loop in enumerate(loops)}
    before = [0]
    for loop in path:
        before.append(before[-1] + (loop.var in level))
    extents = tuple(at_least(row(loop.var.extent), 1.0) for loop in loops)
    inside: list[Row] = [1.0]
    for extent in reversed(extents):
        inside.append(inside[-1] * extent)
    outside: list[Row] = [1.0]
    for extent in extents:
        outside.append(outside[-1] * extent)
    real = tuple(extent > 1 for extent in extents)
    return Nest(store, path, loops, level, tuple(before), extents, real, Iterations(tuple(reversed(inside)), tuple(outside)))
