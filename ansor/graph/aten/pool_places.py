"""Max pools that also return the places of their maxima. Each window is a row of a table of places, which is known at compile time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

import numpy as np

from ansor.graph.aten.translation import AtenCall, Builder
from ansor.graph.ir import Array


def sliding_windows(extents: Sequence[int], places: Sequence[int], kernel: Sequence[int], strides: Sequence[int], padding: Sequence[int],
                    dilation: Sequence[int]) -> Array:
    """The flat index of each element of each window: [windows, elements]. Elements in the padding are left out; the first element fills up the row."""
    rows = []
    for at in itertools.product(*map(range, places)):
        taps = [[begin * stride - pad + tap * step for tap in range(width)]
                for begin, stride, pad, width, step in zip(at, strides, padding, kernel, dilation, strict=True)]
        rows.append(_row(extents, taps, prod(kernel)))
    return np.array(rows, dtype=np.int64)


def adaptive_windows(extents: Sequence[int], places: Sequence[int]) -> Array:
    """The same for the windows of adaptive pools; all rows are filled up to the length of the longest."""
    rows = []
    widest = prod(max(-((p + 1) * n // -m) - p * n // m for p in range(m)) for n, m in zip(extents, places, strict=True))
    for at in itertools.product(*map(range, places)):
        taps = [list(range(p * n // m, -((p + 1) * n // -m))) for p, n, m in zip(at, extents, places, strict=True)]
        rows.append(_row(extents, taps, widest))
    return np.array(rows, dtype=np.int64)


def _row(extents: Sequence[int], taps: Sequence[Sequence[int]], length: int) -> list[int]:
    """The flat indices of a window in memory order, so that the first of equal elements is found. The first element fills up the row."""
    inside = [[tap for tap in one if 0 <= tap < extent] for one, extent in zip(taps, extents, strict=True)]
    found = [int(np.ravel_multi_index(place, tuple(extents))) for place in itertools.product(*inside)]
    return found + found[:1] * (length - len(found))


def pool_with_places(call: AtenCall, build: Builder, source: str, windows: Array) -> list[str | None]:
    """The value and the flat index (int64) of the maximum of each window of each image and channel."""
    shape, result = build.shape(source), call.results[0].shape
    rank = len(shape) - len(result) + int(call.operator.partition("pool")[2][0])
    images = prod(shape[:-rank])
    flat = build.reshape(source, (images, prod(shape[-rank:])))
    count, taps = windows.shape
    table = build.constant(f"{call.name}_windows", windows)
    rows = build.add("index", [flat, table], (images, count, taps), build.dtype(source), dims=(1,), at=1, common=2)
    value = build.add("max", [rows], (images, count), build.dtype(source), axes=(2,), keepdims=False)
    tap = build.add("argmax", [rows], (images, count), "int32", axes=(2,), keepdims=False)
    window = build.constant(f"{call.name}_rows", np.arange(count, dtype=np.int32))
    place = build.add("index", [table, window, tap], (images, count), "int64", dims=(0, 1), at=0, common=2)
    return [build.reshape(value, result), build.reshape(place, result)]
