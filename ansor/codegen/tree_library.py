"""Sums of boosted trees for many rows, by `trees.c`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler

SOURCE = Path(__file__).with_name("trees.c")
ROWS = 64
"""Rows that trees.c processes at a time."""

MOST_LEAVES = 32
"""Per tree: one bit each."""

Sums = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Rows [n, width] -> the sum of the leaves that each reaches, [n]."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes [n] and leaves [n + 1]. A row goes left where its feature is at most the threshold; children >= 0 are nodes, others -1 - leaf."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]


def tree_library(compiler: Compiler) -> Path:
    """The shared library of `trees.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "trees", SOURCE.read_text())


def summed(trees: Sequence[Tree]) -> Sums | None:
    """A function that sums these trees; None without a compiler, or for trees with more than MOST_LEAVES leaves."""
    library = _library()
    if library is None or not trees or max(len(tree.value) for tree in trees) > MOST_LEAVES:
        return None
    return _Forest(library, trees)


@lru_cache
def _library() -> ctypes.CDLL | None:
    loaded = loaded_if_built(lambda: tree_library(find_compiler()), "trees are evaluated by LightGBM, which takes many times as long")
    if loaded is None:
        return None
    address, size = ctypes.c_void_p, ctypes.c_int64
    loaded.ansor_trees_run.argtypes, loaded.ansor_trees_run.restype = [address, address, size, size, address, address], None
    return loaded


class _Struct(ctypes.Structure):
    _fields_ = (
        ("trees", ctypes.c_int64), ("columns", ctypes.c_int64), ("column", ctypes.c_void_p), ("nodes", ctypes.c_void_p), ("slot", ctypes.c_void_p),
        ("threshold", ctypes.c_void_p), ("right", ctypes.c_void_p), ("values", ctypes.c_void_p),
    )  # fmt: skip


class _Forest:
    def __init__(self, library: ctypes.CDLL, trees: Sequence[Tree]) -> None:
        self._run = library.ansor_trees_run
        column, slot = np.unique(np.concatenate([tree.feature for tree in trees]).astype(np.int32), return_inverse=True)
        nodes = np.cumsum([0, *(len(tree.feature) for tree in trees)]).astype(np.int32)
        orders = [_leaf_order(tree) for tree in trees]
        values = np.zeros((len(trees), MOST_LEAVES))
        for k, (tree, order) in enumerate(zip(trees, orders, strict=True)):
            values[k, : len(order)] = tree.value[order]
        right = np.concatenate([_without_left(tree, order) for tree, order in zip(trees, orders, strict=True)])
        threshold = _rounded_down(np.concatenate([tree.threshold for tree in trees]))
        self._arrays = column, nodes, slot.astype(np.int32), threshold, right, values
        self._struct = _Struct(len(trees), len(column), *map(_address, self._arrays))
        self._least_width = int(column.max(initial=-1)) + 1

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        given = np.ascontiguousarray(rows, np.float32)
        count, width = given.shape
        if width < self._least_width:
            read = self._least_width - 1
            raise ValueError(f"asked for trees of rows with {width} features; they read feature {read}: pass rows as wide as those it was trained with")
        sums, scratch = np.empty(count), np.empty(self._struct.columns * ROWS + ROWS, np.float32)
        self._run(ctypes.addressof(self._struct), _address(given), width, count, _address(scratch), _address(sums))
        return sums


def _rounded_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each threshold: float32 numbers compare equally with both."""
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
    return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest).astype(np.float32)


def _leaf_order(tree: Tree) -> list[int]:
    """The leaves from left to right."""
    return _leaves(tree, 0) if len(tree.feature) else [0]


def _leaves(tree: Tree, child: int) -> list[int]:
    return [-1 - child] if child < 0 else _leaves(tree, int(tree.left[child])) + _leaves(tree, int(tree.right[child]))


def _without_left(tree: Tree, order: list[int]) -> NDArray[np.uint32]:
    """Per node, a bit mask of all leaves but those below its left side."""
    place = {leaf: k for k, leaf in enumerate(order)}
    found = [sum(1 << place[leaf] for leaf in _leaves(tree, int(child))) for child in tree.left]
    return ~np.asarray(found, np.uint32)


def _address(array: NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])
