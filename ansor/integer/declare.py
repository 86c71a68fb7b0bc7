"""Declares an operator of an integer network as tensors, for one kernel: inputs, then constants, then the result.

The declaration contains the numbers of a layer that a processor takes as immediates (zero points, limits, the shift); arrays are constants. Layers with the
same geometry and numbers therefore share one kernel and one tuning task.

Bytes are stored as int8, or as uint8 with 128 added. Operators read and write both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from math import prod

from ansor import te
from ansor.integer.operators import Add, AveragePool, Concat, Convolution, Dense, MaxPool, Operator, Shape, Table, Transpose, Window
from ansor.integer.rescale import clamped
from ansor.ir.access import KEPT
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor


def declaration(operator: Operator, shapes: Sequence[Shape], dtypes: Sequence[str] = ()) -> list[Tensor]:
    """The tensors of an operator on inputs of these shapes. dtypes: the stored dtypes of the inputs and of the output, int8 by default."""
    *given, made = dtypes or ("int8",) * (len(shapes) + 1)
    inputs = [te.placeholder(shape, dtype, name=name) for shape, dtype, name in zip(shapes, given, _names(operator), strict=True)]
    constants = [te.placeholder(array.shape, str(array.dtype), name=name, constant=True) for name, array in operator.constants.items()]
    return [*inputs, *constants, result(operator, inputs, constants, made)]


def _names(operator: Operator) -> list[str]:
    """The names of an operator's inputs."""
    if isinstance(operator, Concat):
        return [f"part{place}" for place in range(len(operator.inputs))]
    return ["left", "right"] if isinstance(operator, Add) else ["data", "added"][: len(operator.inputs)]


@singledispatch
def result(operator: Operator, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    """The result of an operator, stored as `dtype`."""
    raise TypeError(f"the operator {operator.kind} has no declaration: write one here, with @result.register")


@result.register
def _(operator: Convolution, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    data, (weights, bias, multipliers) = inputs[0], constants
    window = operator.window
    padded = _rows(operator, data) if operator.by_rows else _padded(data, window, window.filling, operator.form.dtype, operator.stored_channels(data.shape[3]))
    shape = operator.shape([one.shape for one in inputs])
    rows, columns = _taps(window)
    inner = te.reduce_axis((0, weights.shape[2]), name="ci")
    each = weights.shape[3]

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = window_places(window, y, x, rows, columns)
        if operator.depthwise:
            source, weight = (c, weights[rows, columns, c, 0]) if each == 1 else (c // each, weights[rows, columns, c // each, c % each])
            return te.sum(padded[n, at[0], at[1], source].astype("int32") * weight.astype("int32"), axis=[rows, columns])
        if operator.by_rows:
            seen = padded[n, at[0], x * (window.strides[1] * data.shape[3]) + inner]
            return te.sum(seen.astype("int32") * weights[rows, 0, inner, c].astype("int32"), axis=[rows, inner])
        channel = inner if operator.window.groups == 1 else c // (shape[3] // operator.window.groups) * weights.shape[2] + inner
        product = padded[n, at[0], at[1], channel].astype("int32") * weights[rows, columns, inner, c].astype("int32")
        return te.sum(product, axis=[rows, columns, inner])

    sums = te.compute(shape, one, name="sums")

    def whole(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        total = sums[n, y, x, c] + bias[c]
        if operator.added is None:
            return _as(operator.rescale.declared(total, multipliers[c]), dtype)
        return _sum(operator.added, operator.rescale.declared(total, multipliers[c]), inputs[1][n, y, x, c], dtype)

    return te.compute(shape, whole, name="result")


@result.register
def _(operator: Dense, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    (data,), (weights, bias, multipliers) = inputs, constants
    read = _as_stored(data, operator.form.dtype)
    inner = te.reduce_axis((0, data.shape[1]), name="ci")
    shape = operator.shape([data.shape])
    sums = te.compute(shape, lambda n, c: te.sum(read[n, inner].astype("int32") * weights[inner, c].astype("int32"), axis=inner), name="sums")
    return te.compute(shape, lambda n, c: _as(operator.rescale.declared(sums[n, c] + bias[c], multipliers[c]), dtype), name="result")


@result.register
def _(operator: Add, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    left, right = inputs
    return te.compute(left.shape, lambda *at: _sum(operator, left[at], right[at], dtype), name="result")


def _sum(operator: Add, left: Expr, right: Expr, dtype: str) -> Expr:
    factors = operator.multipliers
    offset = operator.offset - sum(_more(one.dtype) * factor for one, factor in zip((left, right), factors, strict=True))
    total = left.astype("int32") * factors[0] + right.astype("int32") * factors[1] + offset
    return _as(clamped((total >> operator.shift) + operator.zero_point, operator.low, operator.high), dtype)


@result.register
def _(operator: Concat, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    return te.nn.concatenate([_as_stored(one, dtype) for one in inputs], operator.axis, "result")


@result.register
def _(operator: AveragePool, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    (data,), window = inputs, operator.window
    padded = _padded(data, window, window.filling, data.dtype)
    rows, columns = _taps(window)
    shape = operator.shape([data.shape])
    multiplier = te.const(int(operator.rescale.multipliers[0]), "int32")
    bias = operator.bias - _more(data.dtype) * prod(window.kernel)

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = window_places(window, y, x, rows, columns)
        return te.sum(padded[n, at[0], at[1], c].astype("int32"), axis=[rows, columns])

    sums = te.compute(shape, one, name="sums")
    return te.compute(shape, lambda n, y, x, c: _as(operator.rescale.declared(sums[n, y, x, c] + bias, multiplier), dtype), name="result")


@result.register
def _(operator: MaxPool, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    (data,), window = inputs, operator.window
    padded = _padded(data, window, -128, dtype)
    rows, columns = _taps(window)

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        at = window_places(window, y, x, rows, columns)
        return te.max(padded[n, at[0], at[1], c], axis=[rows, columns])

    return te.compute(operator.shape([data.shape]), one, name="result")


@result.register
def _(operator: Table, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    (data,), (values,) = inputs, constants
    return te.compute(data.shape, lambda *at: _as(values[data[at].astype("int32") + (128 - _more(data.dtype))], dtype), name="result")


@result.register
def _(operator: Transpose, inputs: Sequence[Tensor], constants: Sequence[Tensor], dtype: str) -> Tensor:
    return te.nn.transpose(_as_stored(inputs[0], dtype), operator.axes, name="result")


def _as_stored(data: Tensor, dtype: str) -> Tensor:
    """The data in the dtype in which they are read. They are copied if they are stored in another one, as each element is read many times."""
    return data if dtype == data.dtype else te.compute(data.shape, lambda *at: _as(data[at], dtype), name=f"{data.name}_{dtype}", attrs={KEPT: True})


def _as(value: Expr, dtype: str) -> Expr:
    """A stored byte as int16, or as the other byte dtype with 128 added or subtracted."""
    if dtype == value.dtype:
        return value
    if dtype == "int16":
        return value.astype(dtype) - te.const(_more(value.dtype), dtype)
    return value.astype(dtype) ^ te.const(128 if dtype == "uint8" else -128, dtype)


def _more(dtype: str) -> int:
    """The number that is added to values stored in this dtype."""
    return 128 if dtype == "uint8" else 0


def _padded(data: Tensor, window: Window, value: int, dtype: str, count: int = 0) -> Tensor:
    """The padded image that windows slide over. count: its channels, by default those of the data; further channels are multiplied by weights of 0."""
    top, left, bottom, right = window.padding
    batch, height, width, channels = data.shape
    count = count or channels
    if not any(window.padding) and count == channels:
        return _as_stored(data, dtype)
    written = te.const(value + _more(dtype), dtype)

    def one(n: Axis, y: Axis, x: Axis, c: Axis) -> Expr:
        inside = [y >= top, y < height + top, x >= left, x < width + left] if any(window.padding) else []
        inside += [c < channels] if count > channels else []
        return te.if_then_else(te.all(*inside), _as(data[n, y - top, x - left, c], dtype), written)

    return te.compute((batch, height + top + bottom, width + left + right, count), one, name="padded")


def _rows(operator: Convolution, data: Tensor) -> Tensor:
    """The padded image that the windows of a convolution by rows slide over: columns and channels are one dimension, as they are contiguous in memory."""
    window, dtype = operator.window, operator.form.dtype
    top, left, bottom, right = window.padding
    batch, height, width, channels = data.shape
    taps, (_, columns) = operator.stored_channels(window.kernel[1] * channels), window.output(height, width)
    length = max((left + width + right) * channels, (columns - 1) * window.strides[1] * channels + taps)

    def one(n: Axis, y: Axis, f: Axis) -> Expr:
        inside = [y >= top, y < height + top, f >= left * channels, f < (left + width) * channels]
        seen = _as(data[n, y - top, f // channels - left, f % channels], dtype)
        return te.if_then_else(te.all(*inside), seen, te.const(window.filling + _more(dtype), dtype))

    return te.compute((batch, top + height + bottom, length), one, name="padded")


def _taps(window: Window) -> tuple[Axis, Axis]:
    return te.reduce_axis((0, window.kernel[0]), name="ky"), te.reduce_axis((0, window.kernel[1]), name="kx")


def window_places(window: Window, y: Axis, x: Axis, rows: Axis, columns: Axis) -> tuple[Expr, Expr]:
    """The row and the column, in the padded data, that a tap of the window at (y, x) reads."""
    return y * window.strides[0] + rows * window.dilation[0], x * window.strides[1] + columns * window.dilation[1]
