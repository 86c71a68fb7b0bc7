"""The operators of integer networks. Each makes one int8 tensor from int8 tensors; its constants are arrays by name.

Sums do not subtract the zero points of inputs. Instead, `bias` includes -zero_point * sum(weights), and padding writes the zero point, so sums are exact
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ansor.integer.rescale import Rescale

Shape = tuple[int, ...]
Array = NDArray[np.generic]


@dataclass(frozen=True)
class Window:
    """How a kernel slides over an image. kernel, strides, dilation: (height, width); padding: top, left, bottom, right; filling: the number that padding
    writes; groups: groups of channels (a kernel of a convolution reads one); depthwise: each channel is a group of its own, whatever `groups` is."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    filling: int = 0
    groups: int = 1
    depthwise: bool = False

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the result, 0 or less if the kernel does not fit."""
        top, left, bottom, right = self.padding
        sizes = (height + top + bottom, width + left + right)
        found = [(size - (taps - 1) * apart - 1) // step + 1
                 for size, taps, step, apart in zip(sizes, self.kernel, self.strides, self.dilation, strict=True)]  # fmt: skip
        return found[0], found[1]

    def __str__(self) -> str:
        words = ["x".join(map(str, self.kernel))]
        words += [f"strides {self.strides}"] if self.strides != (1, 1) else []
        words += [f"padding {self.padding}"] if any(self.padding) else []
        words += [f"dilation {self.dilation}"] if self.dilation != (1, 1) else []
        words += [f"groups {self.groups}"] if self.groups > 1 else []
        return " ".join(words)


@dataclass(frozen=True, eq=False)
class Operator:
    """inputs: names of the tensors that it reads; output: the one it makes."""

    output: str
    inputs: tuple[str, ...]

    @property
    def replaced(self) -> tuple[str, ...]:
        """The inputs that the output may overwrite if nothing reads them later: each element of the output depends only on the same element of these inputs."""
        return ()

    @property
    def kind(self) -> str:
        """Its name, in printed networks and in names of tasks."""
        return type(self).__name__.lower()

    @property
    def constants(self) -> Mapping[str, Array]:
        """Its arrays, in the order in which kernels take them."""
        return {}

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """The shape of the output for inputs of these shapes."""
        return inputs[0]

    def macs(self, output: Shape) -> int:
        """Multiplications for an output of this shape, not counting rescaling."""
        return 0

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.inputs)})"


@dataclass(frozen=True)
class Form:
    """How a kernel multiplies; the results are the same in every form.

    wide: weights are stored as int16, and the data are extended to int16 first.
    unsigned: 128 is added to the data, which makes them uint8; the stored bias includes -128 * sum(weights).
    multiple: the channels that sums run over, or those of all columns of a kernel (`Convolution.by_rows`), are padded to a multiple of this with weights of 0.
    """

    wide: bool = False
    unsigned: bool = False
    multiple: int = 1

    @property
    def dtype(self) -> str:
        """The dtype of the data that weights are multiplied by."""
        return "int16" if self.wide else "uint8" if self.unsigned else "int8"


SIGNED = Form()


@dataclass(frozen=True, eq=False)
class Convolution(Operator):
    """weights: int8 [height, width, in / groups, out], or [height, width, channels, multiplier] if `depthwise`; bias: int32 [out]. With groups, the outputs
    are in the order of the groups, and each reads only the inputs of its own group. added: a fused addition of the result and the second input.
    """

    weights: NDArray[np.int8]
    bias: NDArray[np.int32]
    rescale: Rescale
    window: Window
    form: Form = SIGNED
    added: Add | None = None

    @property
    def kind(self) -> str:
        return "depthwise" if self.depthwise else "convolution"

    @property
    def depthwise(self) -> bool:
        """Whether each channel has kernels of its own."""
        return self.window.depthwise

    @property
    def replaced(self) -> tuple[str, ...]:
        return tuple(name for name in self.inputs[1:] if name != self.inputs[0])

    @property
    def constants(self) -> Mapping[str, Array]:
        height, width, channels, outputs = self.weights.shape
        weights = self.weights.reshape(height, 1, width * channels, outputs) if self.by_rows else self.weights
        missing = self.stored_channels(weights.shape[2]) - weights.shape[2]
        return _stored(np.pad(weights, ((0, 0), (0, 0), (0, missing), (0, 0))) if missing else weights, self.bias, self)

    @property
    def by_rows(self) -> bool:
        """Whether its kernel treats columns and channels as one dimension, so that few channels fill whole groups with fewer weights of 0."""
        plain = not self.depthwise and self.window.groups == 1 and self.window.dilation[1] == 1 and not self.form.wide
        return plain and self.weights.shape[2] % self.form.multiple != 0

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        batch, height, width, channels = inputs[0]
        inner, outer = self.weights.shape[2:]
        if inner * self.window.groups != channels or outer % self.window.groups:
            return ()
        found = (batch, *self.window.output(height, width), inner * outer if self.depthwise else outer)
        return found if all(one == found for one in inputs[1:]) else ()

    def macs(self, output: Shape) -> int:
        return prod(output) * prod(self.weights.shape[: 2 if self.depthwise else 3])

    def stored_channels(self, channels: int) -> int:
        """Channels in the windows of its kernel, including padding, for an input with `channels`."""
        return channels + -channels % self.form.multiple if channels > 1 else channels

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.inputs)}) {self.window}"


@dataclass(frozen=True, eq=False)
class Dense(Operator):
    """Data [rows, in] times weights int8 [in, out]; bias: int32 [out]."""

    weights: NDArray[np.int8]
    bias: NDArray[np.int32]
    rescale: Rescale
    form: Form = SIGNED

    @property
    def constants(self) -> Mapping[str, Array]:
        return _stored(self.weights, self.bias, self)

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return (inputs[0][0], self.weights.shape[1]) if inputs[0][1:] == self.weights.shape[:1] else ()

    def macs(self, output: Shape) -> int:
        return prod(output) * int(self.weights.shape[0])


def _stored(weights: NDArray[np.int8], bias: NDArray[np.int32], one: Convolution | Dense) -> dict[str, Array]:
    """The constants of a layer, in the form in which its kernel multiplies."""
    if one.form.unsigned:
        taps = (0, 1) if isinstance(one, Convolution) and one.depthwise else tuple(range(weights.ndim - 1))
        bias = (bias - 128 * weights.sum(axis=taps, dtype=np.int64).reshape(-1)).astype(np.int32)  # wraps, as the sums do
    return {"weights": weights.astype(np.int16) if one.form.wide else weights, "bias": bias, "multipliers": one.rescale.multipliers}


@dataclass(frozen=True, eq=False)
class Add(Operator):
    """min(max(((a * multipliers[0] + b * multipliers[1] + offset) >> shift) + zero_point, low), high), all in 32 bits."""

    multipliers: tuple[int, int]
    offset: int
    shift: int
    zero_point: int
    low: int
    high: int

    @property
    def replaced(self) -> tuple[str, ...]:
        return self.inputs

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return inputs[0] if inputs[0] == inputs[1] else ()


@dataclass(frozen=True, eq=False)
class Concat(Operator):
    """Tensors of equal quantisation, concatenated along a dimension of the stored order."""

    axis: int

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        rest = {(*one[: self.axis], *one[self.axis + 1 :]) for one in inputs}
        first = inputs[0]
        return (*first[: self.axis], sum(one[self.axis] for one in inputs), *first[self.axis + 1 :]) if len(rest) == 1 else ()


@dataclass(frozen=True, eq=False)
class AveragePool(Operator):
    """The sum over a window plus `bias`, rescaled."""

    window: Window
    bias: int
    rescale: Rescale

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        batch, height, width, channels = inputs[0]
        return (batch, *self.window.output(height, width), channels)

    def __str__(self) -> str:
        return f"averagepool({self.inputs[0]}) {self.window}"


@dataclass(frozen=True, eq=False)
class MaxPool(Operator):
    """The maximum over a window, without its padding."""

    window: Window

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        batch, height, width, channels = inputs[0]
        return (batch, *self.window.output(height, width), channels)

    def __str__(self) -> str:
        return f"maxpool({self.inputs[0]}) {self.window}"


@dataclass(frozen=True, eq=False)
class Table(Operator):
    """values[q + 128] for each element q: any element-wise function."""

    values: NDArray[np.int8]

    @property
    def replaced(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def constants(self) -> Mapping[str, Array]:
        return {"values": self.values}


@dataclass(frozen=True, eq=False)
class Transpose(Operator):
    """Dimension k of the output is `axes[k]` of the input."""

    axes: tuple[int, ...]

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return tuple(inputs[0][axis] for axis in self.axes)


@dataclass(frozen=True, eq=False)
class Reshape(Operator):
    """Another name for the same bytes."""

    to: Shape

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return self.to if prod(self.to) == prod(inputs[0]) else ()
