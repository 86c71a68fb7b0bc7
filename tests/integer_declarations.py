"""Random declarations of products of narrow integers, as quantised networks have them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansor import te
from ansor.te.tensor import Tensor
from tests.declarations import Array, Draw, Given


def quantized(draw: Draw) -> Given:
    """Integer products accumulated wide or narrow, rescaled, clipped and narrowed."""
    n, m, k = draw.extent(7), draw.pick([3, 8, 16, 19]), draw.pick([1, 4, 5, 16])
    source, weight = draw.pick(["int8", "uint8"]), draw.pick(["int8", "int8", "uint8"])
    wide = draw.pick(["int32", "int16", "int8", "int64", "uint8"])
    a, b = te.placeholder((n, k), source, name="a"), te.placeholder((k, m), weight, name="b", constant=draw.chance(50))
    rng = np.random.default_rng(draw.integer(0, 99))
    limits = {"int8": (-128, 128), "uint8": (0, 256)}
    values: dict[str, Array] = {t.name: np.asarray(rng.integers(*limits[t.dtype], t.shape)).astype(t.dtype) for t in (a, b)}
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r].astype(wide) * b[r, j].astype(wide), axis=r), name="c")
    outputs = [c]
    if draw.chance(70):
        scaled = te.compute((n, m), lambda i, j: te.floordiv(c[i, j], 4) if draw_wide(wide) else c[i, j] + 1, name="scaled")
        clipped = te.compute((n, m), lambda i, j: te.max(te.min(scaled[i, j], 100), 3).astype("uint8"), name="clipped")
        outputs = [clipped] if draw.chance(60) else [c, clipped]
    return Given([a, b, *outputs], values)


def draw_wide(dtype: str) -> bool:
    """Whether a dtype is one in which products were accumulated without wrapping."""
    return dtype in ("int32", "int64")


def inner_products(draw: Draw) -> Given:
    """Sums of products of 8-bit integers, over the whole of their range: what instructions compute in groups."""
    a, b = draw.pick(["int8", "uint8"]), draw.pick(["int8", "uint8"])
    group, columns = draw.pick([2, 4, 8, 12, 16]), draw.pick([4, 8, 17, 20, 24, 40])
    form = draw.integer(0, 3)
    if form == 0:
        x, w = te.placeholder((1, 4, 3, group), a, name="x"), te.placeholder((3, 3, group, columns), b, name="w", constant=draw.chance(60))
        result = te.nn.conv2d(x, w, padding=draw.integer(0, 1) + 1, data_layout="NHWC", out_dtype="int32", name="c")
    elif form == 1:
        x, w = te.placeholder((draw.extent(6), group), a, name="x"), te.placeholder((columns, group), b, name="w", constant=draw.chance(40))
        result = te.nn.dense(x, w, out_dtype="int32", name="c")
    elif form == 2:
        x, w = te.placeholder((2, draw.extent(4), group), a, name="x"), te.placeholder((2, columns, group), b, name="w")
        result = te.nn.batch_matmul(x, w, out_dtype="int32", name="c")
    else:
        x, w = te.placeholder((draw.extent(9), group), a, name="x"), te.placeholder((group, columns), b, name="w", constant=draw.chance(50))
        result = te.nn.matmul(x, w, out_dtype="int32", name="c")
    if draw.chance(40):
        result = te.nn.relu(result)
    rng = np.random.default_rng(draw.integer(0, 1000))
    return Given([x, w, result], {tensor.name: _whole_range(rng, tensor) for tensor in (x, w)})


def _whole_range(rng: np.random.Generator, tensor: Tensor) -> Array:
    limits = np.iinfo(tensor.dtype)
    values = np.asarray(rng.integers(limits.min, limits.max, tensor.shape, endpoint=True)).astype(tensor.dtype)
    values[tuple(0 for _ in tensor.shape)] = limits.min
    return values


INTEGER_KINDS: dict[str, Callable[[Draw], Given]] = {"quantized": quantized, "inner_products": inner_products}
