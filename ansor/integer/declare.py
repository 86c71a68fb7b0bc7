"""An operator of an integer network as a declaration: inputs, then constants, then the result, which is one kernel.

Numbers of a layer that a processor takes as immediates (zero points, limits, the shift) are in the declaration, and arrays are constants. So layers of one
geometry and one set of numbers are one kernel, and one task to tune.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from ansor import te
from ansor.integer.operators import Add, AveragePool, Concat, Convolution, Dense, MaxPool, Operator, Shape, Table, Transpose, Window
from ansor.integer.rescale import clamped
from ansor.ir.access import KEPT
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor


@singledispatch
def declaration(operator: Operator, shapes: Sequence[Shape]) -> list[Tensor]:
    """The tensors of an operator on inputs of these shapes."""
    raise TypeError(f"the operator {operator.kind} has no declaration: write one here, with @declaration.register")


@declaration.register
def _(operator: Convolution, shapes: Sequence[Shape]) -> list[Tensor]:
    data, weights, bias, multipliers = _image(shapes), *_constants(operator)
    window = operator.window
    padded = _padded(data, window, window.filling, operator.form.dtype, operator.stored_channels(data.shape[3]))
    shape = operator.shape(shapes)
    rows, columns = te.reduce_axis((0, window.kernel[0]), name="ky"), te.reduce_axis((0, window.kernel[1]), name="kx")
    inner = te.reduce_axis((0, weights.shape[2]), name="ci")
    each = weights.shape[3]

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = _places(window, y, x, rows, columns)
        if operator.depthwise:
            source, weight = (c, weights[rows, columns, c, 0]) if each == 1 else (c // each, weights[rows, columns, c // each, c % each])
            return te.sum(padded[n, at[0], at[1], source].astype("int32") * weight.astype("int32"), axis=[rows, columns])
        channel = inner if operator.window.groups == 1 else c // (shape[3] // operator.window.groups) * weights.shape[2] + inner
        product = padded[n, at[0], at[1], channel].astype("int32") * weights[rows, columns, inner, c].astype("int32")
        return te.sum(product, axis=[rows, columns, inner])

    sums = te.compute(shape, one, name="sums")
    more = [te.placeholder(given, "int8", name="added") for given in shapes[1:]]

    def whole(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        found = operator.rescale.declared(sums[n, y, x, c] + bias[c], multipliers[c])
        return found if operator.added is None else _sum(operator.added, found, more[0][n, y, x, c])

    return [data, *more, weights, bias, multipliers, te.compute(shape, whole, name="result")]


@declaration.register
def _(operator: Dense, shapes: Sequence[Shape]) -> list[Tensor]:
    data = te.placeholder(shapes[0], "int8", name="data")
    weights, bias, multipliers = _constants(operator)
    read = _copied(data, operator.form.dtype)
    inner = te.reduce_axis((0, shapes[0][1]), name="ci")
    shape = operator.shape(shapes)
    sums = te.compute(shape, lambda n, c: te.sum(read[n, inner].astype("int32") * weights[inner, c].astype("int32"), axis=inner), name="sums")
    result = te.compute(shape, lambda n, c: operator.rescale.declared(sums[n, c] + bias[c], multipliers[c]), name="result")
    return [data, weights, bias, multipliers, result]


@declaration.register
def _(operator: Add, shapes: Sequence[Shape]) -> list[Tensor]:
    left, right = (te.placeholder(shape, "int8", name=name) for shape, name in zip(shapes, ("left", "right"), strict=True))
    return [left, right, te.compute(shapes[0], lambda *at: _sum(operator, left[at], right[at]), name="result")]


def _sum(operator: Add, left: Expr, right: Expr) -> Expr:
    total = left.astype("int32") * operator.multipliers[0] + right.astype("int32") * operator.multipliers[1] + operator.offset
    return clamped((total >> operator.shift) + operator.zero_point, operator.low, operator.high)


@declaration.register
def _(operator: Concat, shapes: Sequence[Shape]) -> list[Tensor]:
    parts = [te.placeholder(shape, "int8", name=f"part{place}") for place, shape in enumerate(shapes)]
    return [*parts, te.nn.concatenate(parts, operator.axis, "result")]


@declaration.register
def _(operator: AveragePool, shapes: Sequence[Shape]) -> list[Tensor]:
    data, window = _image(shapes), operator.window
    padded = _padded(data, window, window.filling)
    rows, columns = te.reduce_axis((0, window.kernel[0]), name="ky"), te.reduce_axis((0, window.kernel[1]), name="kx")
    shape = operator.shape(shapes)
    multiplier = te.const(int(operator.rescale.multipliers[0]), "int32")

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = _places(window, y, x, rows, columns)
        return te.sum(padded[n, at[0], at[1], c].astype("int32"), axis=[rows, columns])

    sums = te.compute(shape, one, name="sums")
    result = te.compute(shape, lambda n, y, x, c: operator.rescale.declared(sums[n, y, x, c] + operator.bias, multiplier), name="result")
    return [data, result]


@declaration.register
def _(operator: MaxPool, shapes: Sequence[Shape]) -> list[Tensor]:
    data, window = _image(shapes), operator.window
    padded = _padded(data, window, -128)
    rows, columns = te.reduce_axis((0, window.kernel[0]), name="ky"), te.reduce_axis((0, window.kernel[1]), name="kx")

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = _places(window, y, x, rows, columns)
        return te.max(padded[n, at[0], at[1], c], axis=[rows, columns])

    return [data, te.compute(operator.shape(shapes), one, name="result")]


@declaration.register
def _(operator: Table, shapes: Sequence[Shape]) -> list[Tensor]:
    data = te.placeholder(shapes[0], "int8", name="data")
    (values,) = _constants(operator)
    return [data, values, te.compute(shapes[0], lambda *at: values[data[at].astype("int32") + 128], name="result")]


@declaration.register
def _(operator: Transpose, shapes: Sequence[Shape]) -> list[Tensor]:
    data = te.placeholder(shapes[0], "int8", name="data")
    return [data, te.nn.transpose(data, operator.axes, name="result")]


def _image(shapes: Sequence[Shape]) -> Tensor:
    return te.placeholder(shapes[0], "int8", name="data")


def _constants(operator: Operator) -> list[Tensor]:
    return [te.placeholder(array.shape, str(array.dtype), name=name, constant=True) for name, array in operator.constants.items()]


def _copied(data: Tensor, dtype: str) -> Tensor:
    """The numbers as weights are multiplied with them, in memory of their own: each is read by many."""
    return data if dtype == data.dtype else te.compute(data.shape, lambda *at: _as(data[at], dtype), name="wide", attrs={KEPT: True})


def _as(value: Expr, dtype: str) -> Expr:
    """An int8 as int16, or as uint8, 128 more."""
    return value.astype("uint8") ^ te.const(128, "uint8") if dtype == "uint8" else value.astype(dtype)


def _padded(data: Tensor, window: Window, value: int, dtype: str = "int8", count: int = 0) -> Tensor:
    """What windows are moved over. count: channels, more than the data has where weights of 0 are multiplied with the last; the data's by default."""
    top, left, bottom, right = window.padding
    batch, height, width, channels = data.shape
    count = count or channels
    if not any(window.padding) and count == channels:
        return _copied(data, dtype)
    written = te.const(value + 128 if dtype == "uint8" else value, dtype)

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        inside = [y >= top, y < height + top, x >= left, x < width + left] if any(window.padding) else []
        inside += [c < channels] if count > channels else []
        return te.if_then_else(te.all(*inside), _as(data[n, y - top, x - left, c], dtype), written)

    return te.compute((batch, height + top + bottom, width + left + right, count), one, name="padded")


def _places(window: Window, y: Axis, x: Axis, rows: Axis, columns: Axis) -> tuple[Expr, Expr]:
    return y * window.strides[0] + rows * window.dilation[0], x * window.strides[1] + columns * window.dilation[1]
