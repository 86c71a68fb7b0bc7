"""The loops around a statement as matrices over a population.

A *boundary* b splits the loops of a statement into those outside, 0 .. b - 1, and those inside, b .. count - 1. Boundary 0 is the whole program, the last
one a single iteration. Loops whose extent is 1 in every program are left out: no feature depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.ir.linear import Int, Var
from ansor.ir.loops import For, Store

Matrix = NDArray[np.float64]
Row = float | NDArray[np.float64]
"""A number for all programs of a population: the same for each, or float64 [n]."""

Mask = bool | NDArray[np.bool_]


def row(value: Int) -> Row:
    """An integer of the lowered program as a floating-point row: exact up to 2 ** 53."""
    return value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)


def anywhere(flag: Mask) -> bool:
    """Whether a flag holds for any program. The method, not `np.any`, which takes four times as long on few programs."""
    return bool(flag.any()) if isinstance(flag, np.ndarray) else bool(flag)


def everywhere(flag: Mask) -> bool:
    """Whether a flag holds for all programs."""
    return bool(flag.all()) if isinstance(flag, np.ndarray) else bool(flag)


def magnitude(value: Int) -> Int:
    """Absolute value."""
    return np.abs(value) if isinstance(value, np.ndarray) else abs(value)


@dataclass(frozen=True, eq=False)
class Nest:
    """path: every loop around the store, outermost first; loops: those kept; level: variable -> position among the kept.

    kept_before: per depth of `path`, how many kept loops are further out, so it turns a depth into a boundary.
    extents, less_one: float64 [loops, n]; real: bool [loops, n]; inside, outside: float64 [loops + 1, n], products by boundary.
    """

    store: Store
    path: tuple[For, ...]
    loops: tuple[For, ...]
    level: dict[Var, int]
    kept_before: tuple[int, ...]
    extents: Matrix
    less_one: Matrix
    real: NDArray[np.bool_]
    inside: Matrix
    outside: Matrix

    @property
    def count(self) -> int:
        """Number of programs."""
        return int(self.inside.shape[1])

    @property
    def iterations(self) -> NDArray[np.float64]:
        """Of all loops, [n]."""
        whole: NDArray[np.float64] = self.inside[0]
        return whole


def nest_of(path: tuple[For, ...], store: Store, count: int) -> Nest:
    """The loops of `path` around `store`, for `count` programs."""
    loops = tuple(loop for loop in path if anywhere(loop.var.extent > 1))
    level = {loop.var: k for k, loop in enumerate(loops)}
    before = [0]
    for loop in path:
        before.append(before[-1] + (loop.var in level))
    extents = np.empty((len(loops), count))
    for k, loop in enumerate(loops):
        extents[k] = loop.var.extent
    inside = np.ones((len(loops) + 1, count))
    for k in range(len(loops) - 1, -1, -1):
        np.multiply(inside[k + 1], extents[k], out=inside[k])
    outside = np.ones((len(loops) + 1, count))
    for k in range(len(loops)):
        np.multiply(outside[k], extents[k], out=outside[k + 1])
    return Nest(store, path, loops, level, tuple(before), extents, extents - 1, extents > 1, inside, outside)
