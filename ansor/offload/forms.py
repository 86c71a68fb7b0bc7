"""Declares operators of integer networks for a core. Channels are the second dimension of its tensors; the results are equal in every byte.

Constants that do not fit into an instruction become tensors, with a number for each channel.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ansor import te
from ansor.integer.declare import window_places
from ansor.integer.operators import Add, AveragePool, Convolution, Dense, MaxPool, Operator, Reshape, Shape, Window
from ansor.integer.rescale import clamped
from ansor.offload.alu_rescale import AluRescale, Part, alu_rescale
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor
from ansor.vta.transfers import MOST_ZEROS

Array = NDArray[np.generic]
IMMEDIATE = (1 << 15) - 1
STEP = 15
"""The largest shift, in bits, that every core can do in one instruction."""


@dataclass(frozen=True, eq=False)
class Form:
    """An operator for the core. tensors: inputs, constants and the result; empty if it only renames the same bytes; constants: by tensor name."""

    operator: Operator
    tensors: tuple[Tensor, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)

    @property
    def renames(self) -> bool:
        """Whether it is only a new name, so that nothing has to run."""
        return not self.tensors


@dataclass(frozen=True)
class OperatorInput:
    """An input of an operator: its stored shape, and a lower bound on its numbers."""

    shape: Shape
    least: int


@singledispatch
def form_of(operator: Operator, given: Sequence[OperatorInput]) -> Form | str:
    """The operator for the core, or why the core cannot compute it exactly."""
    return f"a core has no {operator.kind}"


def on_device(shape: Shape) -> Shape:
    """A stored shape in the core's order: channels of images second."""
    return (shape[0], shape[3], shape[1], shape[2]) if len(shape) == 4 else shape


@form_of.register
def _(operator: Convolution, given: Sequence[OperatorInput]) -> Form | str:
    if operator.added is not None:
        return "it has a fused addition, which is a separate operator for a core"
    window, weights = operator.window, operator.weights
    refused = _padding_refused(window)
    around = _borders(operator, given[0].shape)
    magnitudes = 128 * np.abs(weights.astype(np.int64)).sum(axis=(0, 1) if operator.depthwise else (0, 1, 2)).reshape(-1)
    rescale = alu_rescale(operator.rescale, operator.bias, magnitudes)
    if refused or isinstance(rescale, str):
        return refused or str(rescale)
    data = te.placeholder(on_device(given[0].shape), "int8", name="data")
    order = weights.transpose(2, 3, 0, 1).reshape(-1, *window.kernel) if operator.depthwise else weights.transpose(3, 2, 0, 1)
    numbers = _Numbers(rescale)
    kernel = numbers.constant("weights", np.ascontiguousarray(order))
    source, shape = _padded(data, window), on_device(operator.shape([given[0].shape]))
    ky, kx = te.reduce_axis(window.kernel[0], "ky"), te.reduce_axis(window.kernel[1], "kx")
    inner, groups = te.reduce_axis(weights.shape[2], "ci"), weights.shape[2] if operator.depthwise else operator.window.groups

    def one(n: Axis, c: Axis, y: Axis, x: Axis) -> Expr:
        at, group = window_places(window, y, x, ky, kx), c // (shape[1] // groups) if shape[1] > groups else c
        if operator.depthwise:
            return te.sum(source[n, group, at[0], at[1]].astype("int32") * kernel[c, ky, kx].astype("int32"), axis=[ky, kx])
        channel = inner if groups == 1 else group * weights.shape[2] + inner
        return te.sum(source[n, channel, at[0], at[1]].astype("int32") * kernel[c, inner, ky, kx].astype("int32"), axis=[inner, ky, kx])

    sums = te.compute(shape, one, name="sums")
    bias = None if around is None else numbers.constant("bias", (around + rescale.bias[:, None, None]).astype(np.int32))
    return numbers.form(operator, [data], sums, bias)


def _borders(operator: Convolution, shape: Shape) -> NDArray[np.int64] | None:
    """The amount that padding with a number other than 0 adds to the sums, [channels, height, width]; None for padding with 0."""
    window = operator.window
    if not window.filling or not any(window.padding):
        return None
    weights = operator.weights.astype(np.int64)
    weights = weights.reshape(*window.kernel, -1) if operator.depthwise else weights.sum(axis=2)
    rows, columns = (one.astype(np.int64) for one in _seen(window, shape))
    inside = np.einsum("yk,xl,klc->cyx", rows, columns, weights)
    found: NDArray[np.int64] = window.filling * (weights.sum(axis=(0, 1))[:, None, None] - inside)
    return found


@form_of.register
def _(operator: Dense, given: Sequence[OperatorInput]) -> Form | str:
    rescale = alu_rescale(operator.rescale, operator.bias, 128 * np.abs(operator.weights.astype(np.int64)).sum(axis=0))
    if isinstance(rescale, str):
        return rescale
    data, numbers = te.placeholder(given[0].shape, "int8", name="data"), _Numbers(rescale)
    kernel = numbers.constant("weights", np.ascontiguousarray(operator.weights.T))
    inner = te.reduce_axis(given[0].shape[1], "ci")
    shape = operator.shape([given[0].shape])
    sums = te.compute(shape, lambda n, c: te.sum(data[n, inner].astype("int32") * kernel[c, inner].astype("int32"), axis=inner), name="sums")
    return numbers.form(operator, [data], sums)


@form_of.register
def _(operator: AveragePool, given: Sequence[OperatorInput]) -> Form | str:
    channels, taps = given[0].shape[3], int(np.prod(operator.window.kernel))
    bias, most = np.full(channels, operator.bias, np.int32), np.full(channels, 128 * taps, np.int64)
    rescale, refused = alu_rescale(operator.rescale, bias, most), _padding_refused(operator.window)
    if refused or isinstance(rescale, str):
        return refused or str(rescale)
    data = te.placeholder(on_device(given[0].shape), "int8", name="data")
    shape = on_device(operator.shape([given[0].shape]))
    return _Numbers(rescale).form(operator, [data], _pooled(data, operator.window, shape, te.sum, operator.window.filling))


@form_of.register
def _(operator: MaxPool, given: Sequence[OperatorInput]) -> Form | str:
    if refused := _padding_refused(operator.window):
        return refused
    if not all(np.all(one.any(axis=1)) for one in _seen(operator.window, given[0].shape)):
        return "some of its windows contain only padding"
    data = te.placeholder(on_device(given[0].shape), "int8", name="data")
    found = _pooled(data, operator.window, on_device(operator.shape([given[0].shape])), te.max, 0 if given[0].least >= 0 else -128)
    return Form(operator, (data, te.compute(found.shape, lambda *at: found[at].astype("int8"), name="result")))


@form_of.register
def _(operator: Add, given: Sequence[OperatorInput]) -> Form | str:
    shape = on_device(given[0].shape)
    if len(shape) not in (2, 4):
        return f"its tensors have {len(shape)} dimensions, but a core supports 2 or 4"
    together = operator.multipliers[0] | operator.multipliers[1]
    out = min((together & -together).bit_length() - 1 if together else 0, operator.shift)
    part = Part(None, None, operator.shift - out)
    numbers = _Numbers(AluRescale(np.zeros(shape[1], np.int32), part, operator.zero_point, operator.low, operator.high))
    sides = [te.placeholder(shape, "int8", name=name) for name in ("left", "right")]
    scaled = [numbers.factor(f"{side.name}_multiplier", multiplier >> out, shape[1]) for side, multiplier in zip(sides, operator.multipliers, strict=True)]
    offset = numbers.factor("offset", operator.offset >> out, shape[1])

    def one(*at: Axis) -> Expr:
        left, right = (_with("mul", side[at].astype("int32"), factor, at) for side, factor in zip(sides, scaled, strict=True))
        return numbers.narrowed(_with("add", left + right, offset, at))

    return Form(operator, (*sides, *numbers.tensors, te.compute(shape, one, name="result")), numbers.constants)


@form_of.register
def _(operator: Reshape, given: Sequence[OperatorInput]) -> Form | str:
    shapes = given[0].shape, operator.to
    if all(len(shape) in (2, 4) and sum(extent > 1 for extent in shape[1:]) <= 1 for shape in shapes) and shapes[0][0] == shapes[1][0]:
        return Form(operator, ())
    return f"it changes the order of channels of {list(shapes[0])}"


class _Numbers:
    """The constants of a declaration, and the arithmetic with them. Mutable, and private to one form."""

    def __init__(self, rescale: AluRescale) -> None:
        self.rescale = rescale
        self.tensors: list[Tensor] = []
        self.constants: dict[str, Array] = {}

    def constant(self, name: str, array: Array) -> Tensor:
        """Add a constant; returns its tensor."""
        self.constants[name] = array
        self.tensors.append(te.placeholder(array.shape, str(array.dtype), name=name, constant=True))
        return self.tensors[-1]

    def factor(self, name: str, number: int, channels: int) -> Tensor | int:
        """A number that is the same for all channels: itself if it fits into an instruction, else a tensor."""
        return number if abs(number) <= IMMEDIATE else self.constant(name, np.full(channels, number, np.int32))

    def form(self, operator: Operator, inputs: Sequence[Tensor], sums: Tensor, bias: Tensor | None = None) -> Form:
        """The operator with these sums, channels second. bias: one for each place of an image, instead of one for each channel."""
        rescale, named = self.rescale, self._channels
        whole = named("bias", rescale.bias) if bias is None else 0
        limits = None if rescale.limits is None else [named(name, one) for name, one in zip(("least", "most"), rescale.limits, strict=True)]
        factor, added = named("multipliers", rescale.part.multipliers), named("added", rescale.part.added)
        low = rescale.low_part
        low_factor = 0 if low is None else named("low_multipliers", low.multipliers)
        low_added = 0 if low is None else named("low_added", low.added)

        def one(*at: Axis) -> Expr:
            held = _with("add", sums[at], whole, at) if bias is None else sums[at] + bias[at[1:]]
            if limits is not None:
                held = _with("max", _with("min", held, limits[1], at), limits[0], at)
            value = held if rescale.part.multipliers is None else _with("mul", held, factor, at)
            if low is not None:
                value = value + (_with("add", _with("mul", held, low_factor, at), low_added, at) >> low.shift)
            return self.narrowed(_with("add", value, added, at))

        return Form(operator, (*inputs, *self.tensors, te.compute(sums.shape, one, name="result")), self.constants)

    def _channels(self, name: str, array: NDArray[np.int32] | None) -> Tensor | int:
        if array is None or not np.any(array):
            return 0
        same = int(array[0]) if np.all(array == array[0]) else None
        return self.factor(name, same, len(array)) if same is not None else self.constant(name, array)

    def narrowed(self, value: Expr) -> Expr:
        """Shifted, and clipped to the limits of the result."""
        left = self.rescale.part.shift
        while left:
            step = min(left, STEP)
            value, left = value >> step, left - step
        value = value + self.rescale.zero_point if self.rescale.zero_point else value
        return clamped(value, self.rescale.low, self.rescale.high)


def _with(operation: str, value: Expr, other: Tensor | int, at: Sequence[Axis]) -> Expr:
    """An operation on a value and a number, or a number for each channel."""
    if isinstance(other, int):
        idle = {"add": 0, "mul": 1}.get(operation) == other
        return value if idle else _OPERATIONS[operation](value, te.const(other, "int32"))
    return _OPERATIONS[operation](value, other[at[1]])


_OPERATIONS: Mapping[str, Callable[[Expr, Expr], Expr]] = {"add": operators.add, "mul": operators.mul, "min": te.min, "max": te.max}


def _padding_refused(window: Window) -> str:
    """Why the core cannot pad like this; '' if it can."""
    if max(window.padding) > MOST_ZEROS:
        return f"it pads by {max(window.padding)}, but a core pads by at most {MOST_ZEROS}"
    return ""


def _seen(window: Window, shape: Shape) -> list[NDArray[np.bool_]]:
    """For height and width: which taps are inside the image, at each place of the result."""
    found = []
    for side, count in enumerate(window.output(*shape[1:3])):
        first = np.arange(count) * window.strides[side] - window.padding[side]
        taps = first[:, None] + np.arange(window.kernel[side]) * window.dilation[side]
        found.append((taps >= 0) & (taps < shape[1 + side]))
    return found


def _padded(data: Tensor, window: Window, number: int = 0) -> Tensor:
    """Images padded with a number."""
    top, left, bottom, right = window.padding
    if not any(window.padding):
        return data
    n, channels, height, width = data.shape

    def one(a: Axis, c: Axis, y: Axis, x: Axis) -> Expr:
        inside = te.all(y >= top, y < height + top, x >= left, x < width + left)
        return te.if_then_else(inside, data[a, c, y - top, x - left], te.const(number, "int8"))

    return te.compute((n, channels, height + top + bottom, width + left + right), one, name="padded")


def _pooled(data: Tensor, window: Window, shape: Shape, reduced: Callable[..., Expr], padding: int) -> Tensor:
    source = _padded(data, window, padding)
    ky, kx = te.reduce_axis(window.kernel[0], "ky"), te.reduce_axis(window.kernel[1], "kx")

    def one(n: Axis, c: Axis, y: Axis, x: Axis) -> Expr:
        at = window_places(window, y, x, ky, kx)
        return reduced(source[n, c, at[0], at[1]].astype("int32"), axis=[ky, kx])

    return te.compute(shape, one, name="sums")
