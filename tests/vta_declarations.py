"""Operators that a VTA core can compute, in plain declarations."""

from __future__ import annotations

from ansor import te
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor


def narrowed(value: Expr, low: int = -128) -> Expr:
    """Clipped to int8."""
    return te.maximum(te.minimum(value, 127), low).astype("int8")


def dense(m: int, n: int, k: int, *, turned: bool = False) -> list[Tensor]:
    """Rows times weights [n, k], or [k, n], and a bias; shifted and clipped."""
    a, bias = te.placeholder((m, k), "int8", name="A"), te.placeholder((n,), "int32", name="B", constant=True)
    w, r = te.placeholder((k, n) if turned else (n, k), "int8", name="W", constant=True), te.reduce_axis(k, "k")
    acc = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("int32") * (w[r, j] if turned else w[j, r]).astype("int32"), axis=r), name="acc")
    return [a, w, bias, te.compute((m, n), lambda i, j: narrowed((acc[i, j] + bias[j]) >> 6), name="out")]


def padded(x: Tensor, by: int, number: int = 0) -> Tensor:
    """Padding with 0 or another number around rows and columns of [n, c, h, w]."""
    n, c, h, w = x.shape

    def one(a: Expr, b: Expr, y: Expr, z: Expr) -> Expr:
        return te.if_then_else(te.all(y >= by, y < h + by, z >= by, z < w + by), x[a, b, y - by, z - by], te.const(number, "int8"))

    return te.compute((n, c, h + 2 * by, w + 2 * by), one, name="padded") if by else x


def conv2d(
    shape: tuple[int, int, int, int], channels: int, kernel: int, *, stride: int = 1, pad: int = 0, dilation: int = 1, residual: bool = False,
    bias: bool = True, number: int = 0,
) -> list[Tensor]:
    """A convolution with a bias, or without, shifted, clipped at 0; `residual`: int8 added after the shift."""
    n, ci, h, w = shape
    x, weights = te.placeholder(shape, "int8", name="x"), te.placeholder((channels, ci, kernel, kernel), "int8", name="w", constant=True)
    add, source = te.placeholder((channels,), "int32", name="b", constant=True), padded(x, pad, number)
    size = tuple((extent + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for extent in (h, w))
    c, ky, kx = te.reduce_axis(ci, "ci"), te.reduce_axis(kernel, "ky"), te.reduce_axis(kernel, "kx")

    def one(a: Expr, b: Expr, y: Expr, z: Expr) -> Expr:
        data = source[a, c, y * stride + ky * dilation, z * stride + kx * dilation].astype("int32")
        return te.sum(data * weights[b, c, ky, kx].astype("int32"), axis=[c, ky, kx])

    acc = te.compute((n, channels, *size), one, name="acc")
    biased = te.compute(acc.shape, lambda a, b, y, z: acc[a, b, y, z] + add[b], name="biased") if bias else acc
    given = [x, weights, add] if bias else [x, weights]
    if not residual:
        return [*given, te.compute(acc.shape, lambda *at: narrowed(biased[at] >> 9, 0), name="out")]
    other = te.placeholder(acc.shape, "int8", name="r")
    return [*given, other, te.compute(acc.shape, lambda *at: narrowed((biased[at] >> 9) + other[at].astype("int32"), 0), name="out")]


def channels_last(shape: tuple[int, int, int, int], channels: int, kernel: int, *, pad: int = 0) -> list[Tensor]:
    """A convolution of [n, h, w, c], shifted and clipped."""
    n, h, w, ci = shape
    x, weights = te.placeholder(shape, "int8", name="x"), te.placeholder((channels, ci, kernel, kernel), "int8", name="w", constant=True)

    def one(a: Expr, y: Expr, z: Expr, b: Expr) -> Expr:
        return te.if_then_else(te.all(y >= pad, y < h + pad, z >= pad, z < w + pad), x[a, y - pad, z - pad, b], te.const(0, "int8"))

    source = te.compute((n, h + 2 * pad, w + 2 * pad, ci), one, name="padded") if pad else x
    c, ky, kx = te.reduce_axis(ci, "ci"), te.reduce_axis(kernel, "ky"), te.reduce_axis(kernel, "kx")

    def summed(a: Expr, y: Expr, z: Expr, b: Expr) -> Expr:
        return te.sum(source[a, y + ky, z + kx, c].astype("int32") * weights[b, c, ky, kx].astype("int32"), axis=[c, ky, kx])

    acc = te.compute((n, h + 2 * pad - kernel + 1, w + 2 * pad - kernel + 1, channels), summed, name="acc")
    return [x, weights, te.compute(acc.shape, lambda *at: narrowed(acc[at] >> 7), name="out")]


def grouped(shape: tuple[int, int, int, int], channels: int, groups: int, kernel: int = 3, *, stride: int = 1, pad: int = 1, dilation: int = 1,
            residual: bool = False, constant: bool = True) -> list[Tensor]:  # fmt: skip
    """A convolution in groups with a bias and a factor for each channel, shifted and clipped; `residual`: int8 added after the shift."""
    x, w = te.placeholder(shape, "int8", name="x"), te.placeholder((channels, shape[1] // groups, kernel, kernel), "int8", name="w", constant=constant)
    b, m = (te.placeholder((channels,), "int32", name=name, constant=True) for name in "bm")
    acc = te.nn.conv2d(x, w, stride, pad, dilation, groups, out_dtype="int32", name="acc")
    if not residual:
        return [x, w, b, m, te.compute(acc.shape, lambda *at: narrowed(((acc[at] + b[at[1]]) * m[at[1]]) >> 14), name="out")]
    other = te.placeholder(acc.shape, "int8", name="r")
    return [x, w, b, other, te.compute(acc.shape, lambda *at: narrowed(((acc[at] + b[at[1]]) >> 7) + other[at].astype("int32")), name="out")]


def groups_of_one() -> list[Tensor]:
    """Two groups of one channel and one result, with the channels of a group written without simplification."""
    x, w = te.placeholder((2, 2, 5, 7), "int8", name="x"), te.placeholder((2, 1, 1, 1), "int8", name="w", constant=True)
    c, ky, kx = (te.reduce_axis(1, name) for name in ("rc", "ky", "kx"))

    def one(a: Expr, o: Expr, y: Expr, z: Expr) -> Expr:
        return te.sum(x[a, o // 1 * 1 + c, y * 3 + ky, z + kx].astype("int32") * w[o, c, ky, kx].astype("int32"), axis=[c, ky, kx])

    acc = te.compute((2, 2, 2, 7), one, name="acc")
    return [x, w, te.compute(acc.shape, lambda *at: narrowed(acc[at] >> 6), name="out")]


def pool(shape: tuple[int, int, int, int], kernel: int, *, stride: int, pad: int = 0, mean: bool = False, number: int = 0) -> list[Tensor]:
    """The maximum of each window, or its sum, shifted."""
    n, channels, h, w = shape
    x = te.placeholder(shape, "int8", name="x")
    source, ky, kx = padded(x, pad, number), te.reduce_axis(kernel, "ky"), te.reduce_axis(kernel, "kx")
    size = tuple((extent + 2 * pad - kernel) // stride + 1 for extent in (h, w))
    reduced = te.sum if mean else te.max

    def one(a: Expr, b: Expr, y: Expr, z: Expr) -> Expr:
        return reduced(source[a, b, y * stride + ky, z * stride + kx].astype("int32"), axis=[ky, kx])

    found = te.compute((n, channels, *size), one, name="found")
    return [x, te.compute(found.shape, lambda *at: (found[at] >> 3 if mean else found[at]).astype("int8"), name="out")]


def depthwise(shape: tuple[int, int, int, int], kernel: int, *, stride: int = 1, pad: int = 0, number: int = 0) -> list[Tensor]:
    """A convolution of each channel alone."""
    n, channels, h, w = shape
    x, weights = te.placeholder(shape, "int8", name="x"), te.placeholder((channels, kernel, kernel), "int8", name="w", constant=True)
    source, ky, kx = padded(x, pad, number), te.reduce_axis(kernel, "ky"), te.reduce_axis(kernel, "kx")
    size = tuple((extent + 2 * pad - kernel) // stride + 1 for extent in (h, w))

    def one(a: Expr, b: Expr, y: Expr, z: Expr) -> Expr:
        return te.sum(source[a, b, y * stride + ky, z * stride + kx].astype("int32") * weights[b, ky, kx].astype("int32"), axis=[ky, kx])

    found = te.compute((n, channels, *size), one, name="found")
    return [x, weights, te.compute(found.shape, lambda *at: narrowed(found[at] >> 7), name="out")]


def added(shape: tuple[int, ...]) -> list[Tensor]:
    """Two tensors of different scales, added."""
    x, y = te.placeholder(shape, "int8", name="x"), te.placeholder(shape, "int8", name="y")
    return [x, y, te.compute(shape, lambda *at: narrowed((x[at].astype("int32") * 3 + y[at].astype("int32") * 5) >> 2, 0), name="out")]


def rescaled(size: int = 8, channels: int = 24, images: int = 1) -> list[Tensor]:
    """A convolution whose sums are limited and multiplied by a number of more bits than fit: high and low part, each with the sums."""
    x, w, b, _ = conv2d((images, channels, size, size), channels, 3, pad=1)
    low, high = (te.placeholder((channels,), "int32", name=name, constant=True) for name in ("low", "high"))
    source, c, ky, kx = padded(x, 1), te.reduce_axis(channels, "ci"), te.reduce_axis(3, "ky"), te.reduce_axis(3, "kx")

    def product(n: Axis, o: Axis, y: Axis, z: Axis) -> Expr:
        return te.sum(source[n, c, y + ky, z + kx].astype("int32") * w[o, c, ky, kx].astype("int32"), axis=[c, ky, kx])

    acc = te.compute((images, channels, size, size), product, name="acc")

    def one(*at: Axis) -> Expr:
        held = te.maximum(acc[at] + b[at[1]], -20000)
        return narrowed((held * high[at[1]] + ((held * low[at[1]] + 77) >> 12)) >> 14)

    return [x, w, b, low, high, te.compute(acc.shape, one, name="out")]


def turned_round(shape: tuple[int, int]) -> list[Tensor]:
    """Numbers that tensors are subtracted from, and numbers for each channel that are subtracted."""
    x, c = te.placeholder(shape, "int8", name="x"), te.placeholder(shape[1:], "int32", name="c", constant=True)
    return [x, c, te.compute(shape, lambda i, j: narrowed(300 - (te.maximum(-x[i, j].astype("int32"), 5) - c[j]) * 3), name="out")]
