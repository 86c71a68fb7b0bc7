"""Distances between points of many dimensions, by `distances.c`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler

SOURCE = Path(__file__).with_name("distances.c")
LANES = 16
"""Points that distances.c processes in parallel."""

Points = NDArray[np.float32]
Distances = Callable[[Points], NDArray[np.float64]]
"""Points [m, width] -> their Euclidean distances from the points it was made for, [m, n]. Results are bitwise independent of the other points."""


def distance_library(compiler: Compiler) -> Path:
    """The shared library of `distances.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "distances", SOURCE.read_text())


def distances_from(points: Points) -> Distances:
    """A function for distances from these points [n, width]: by `distances.c`, or NumPy without a compiler."""
    library = _library()
    return _InC(library, points) if library is not None else _InNumPy(points)


@lru_cache
def _library() -> ctypes.CDLL | None:
    loaded = loaded_if_built(lambda: distance_library(find_compiler()), "distances are computed by NumPy, which takes several times as long")
    if loaded is None:
        return None
    address, size = ctypes.c_void_p, ctypes.c_int64
    loaded.ansor_distances.argtypes, loaded.ansor_distances.restype = [address, size, address, size, size, address], None
    return loaded


@dataclass(frozen=True, eq=False)
class _InNumPy:
    points: Points

    def __call__(self, points: Points) -> NDArray[np.float64]:
        found = np.empty((len(_checked(points, self.points.shape[1])), len(self.points)))
        for row, point in zip(found, points, strict=True):
            row[:] = np.sqrt(np.square(self.points - point).sum(axis=1))
        return found


def _checked(points: Points, width: int) -> Points:
    if points.ndim != 2 or points.shape[1] != width:
        raise ValueError(f"asked for distances of points of shape {points.shape} from points of {width} dimensions: pass points of as many")
    return points


class _InC:
    def __init__(self, library: ctypes.CDLL, points: Points) -> None:
        self._run, (self._count, self._width) = library.ansor_distances, points.shape
        self._groups = -(-self._count // LANES)
        padded = np.zeros((self._groups * LANES, self._width), np.float32)
        padded[: self._count] = points
        packed = padded.reshape(self._groups, LANES, self._width).transpose(0, 2, 1)
        # Vector loads need alignment to their own size.
        room = np.empty(packed.size + LANES, np.float32)
        start = -room.ctypes.data % 64 // 4
        self._packed = room[start : start + packed.size]
        self._packed[:] = packed.ravel()

    def __call__(self, points: Points) -> NDArray[np.float64]:
        given = np.ascontiguousarray(_checked(points, self._width), np.float32)
        found = np.empty((len(given), self._groups * LANES))
        self._run(given.ctypes.data, len(given), self._packed.ctypes.data, self._groups, self._width, found.ctypes.data)
        return found[:, : self._count]
