"""Results of a model whose quantisation is not known yet. Each becomes operators of the network when the model, or its calibration, determines it.

A ReLU or a clip after such a result narrows its limits and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.integer.builder import Builder
from ansor.integer.network import Quantisation
from ansor.integer.operators import Add, AveragePool, Concat, Convolution, Dense, MaxPool, Table, Window
from ansor.integer.rescale import Doubles, rescale_of

P = TypeVar("P", bound="Pending")
ADD_BITS = 21
"""Bits of the multipliers of an addition. A stored number minus its zero point has 9 bits, so the sum of two products has 31."""


@dataclass(frozen=True, eq=False)
class Pending:
    """sources: integer tensors that it reads; low, high: limits of the real result."""

    sources: tuple[str, ...]
    low: float
    high: float

    def limited(self: P, low: float, high: float) -> P:
        """The same result, also limited to this range."""
        return replace(self, low=max(self.low, low), high=min(max(self.high, low), high))

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        """Add the operator `name` to the network; returns the name of the tensor that holds its result."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class WeightedSum(Pending):
    """A convolution, or a dense layer if there is no window.

    weights: int8, in the layout of `Convolution` or `Dense`; scales: scale of each output's weights, [1] or [out]; bias: real [out], exact if it is a
    multiple of `scale of the input * scales`.
    """

    weights: NDArray[np.int8]
    scales: Doubles
    bias: Doubles
    window: Window | None = None
    depthwise: bool = False

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        source = build.quantisation(self.sources[0])
        scales = np.broadcast_to(self.scales * source.scale, self.bias.shape)
        wide, taps = self.weights.astype(np.int64), tuple(range(2 if self.depthwise else self.weights.ndim - 1))
        summed, magnitudes = wide.sum(axis=taps).reshape(-1), np.abs(wide).sum(axis=taps).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            bias = np.nan_to_num(np.rint(np.where(scales > 0, self.bias / scales, 0.0)), posinf=2.0**40, neginf=-(2.0**40)) - source.zero_point * summed
        if np.any(np.abs(bias) + 128 * magnitudes >= 2**31):
            raise ModelError(f"asked for {name}, whose sums may exceed 32 bits: its bias is too large for the scales of input and weights; calibrate it again")
        rescale = rescale_of(scales / output.scale, output.zero_point, output.limits(self.low, self.high), name)
        rescale = replace(rescale, multipliers=np.ascontiguousarray(np.broadcast_to(rescale.multipliers, bias.shape)))
        rescale, bias = rescale.folded(bias.astype(np.int64), 128 * magnitudes)
        whole = bias.astype(np.int32)
        if self.window is None:
            return build.add(Dense(name, self.sources, self.weights, whole, rescale), output)
        window = replace(self.window, filling=source.zero_point, depthwise=self.depthwise)
        return build.add(Convolution(name, self.sources, self.weights, whole, rescale, window), output)


@dataclass(frozen=True, eq=False)
class Sum(Pending):
    """The sum of two tensors of one shape; sign: -1 to subtract the second one."""

    sign: int = 1

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        left, right = (build.quantisation(source) for source in self.sources)
        factors = np.array([left.scale, right.scale]) / output.scale
        largest = float(factors.max())
        if not (math.isfinite(largest) and 2.0**-9 <= largest < 2.0**20):
            raise ModelError(f"asked for the sum {name}, whose operands have {largest:g} times its scale; this has to be from 2^-9 to 2^20: check the scales")
        shift = ADD_BITS - math.frexp(largest)[1]
        multipliers = np.rint(factors * 2.0**shift).astype(np.int64) * (1, self.sign)
        offset = -int(multipliers @ np.array([left.zero_point, right.zero_point])) + (1 << (shift - 1))
        made = Add(name, self.sources, (int(multipliers[0]), int(multipliers[1])), offset, shift, output.zero_point, *output.limits(self.low, self.high))
        return build.add(made, output)


@dataclass(frozen=True, eq=False)
class Concatenation(Pending):
    """Tensors concatenated along a dimension of the model's order."""

    axis: int

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        sources = []
        for place, source in enumerate(self.sources):
            same = build.quantisation(source) == output and (self.low, self.high) == (-math.inf, math.inf)
            part = Function((source,), self.low, self.high, lambda values: values)
            sources.append(source if same else part.quantised(build, f"{name}_part{place}", output))
        axis = (0, 3, 1, 2)[self.axis] if len(build.shape(sources[0])) == 4 else self.axis
        return build.add(Concat(name, tuple(sources), axis), output)


@dataclass(frozen=True, eq=False)
class Average(Pending):
    """The mean over a window, with padding counted as zeros; flat: drop height and width, which are 1."""

    window: Window
    flat: bool = False

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        source, taps = build.quantisation(self.sources[0]), math.prod(self.window.kernel)
        factor = np.array([source.scale / output.scale / taps])
        rescale = rescale_of(factor, output.zero_point, output.limits(self.low, self.high), name)
        rescale, bias = rescale.folded(np.array([-source.zero_point * taps]), np.array([128 * taps]))
        made = build.add(AveragePool(name, self.sources, replace(self.window, filling=source.zero_point), int(bias[0]), rescale), output)
        return build.reshaped(made, build.shape(made)[:2]) if self.flat else made


@dataclass(frozen=True, eq=False)
class Maximum(Pending):
    """The maximum over a window."""

    window: Window

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        source = build.quantisation(self.sources[0])
        if output == source and (self.low, self.high) == (-math.inf, math.inf):
            return build.add(MaxPool(name, self.sources, self.window), output)
        pooled = build.add(MaxPool(f"{name}_max", self.sources, self.window), source)
        return Function((pooled,), self.low, self.high, lambda values: values).quantised(build, name, output)


@dataclass(frozen=True, eq=False)
class Function(Pending):
    """An element-wise function, which becomes a lookup table."""

    function: Callable[[Doubles], Doubles]

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        source = build.quantisation(self.sources[0])
        values = self.function(source.real(np.arange(-128, 128).astype(np.int8)))
        table = output.quantised(np.clip(values, self.low, self.high))
        return build.add(Table(name, self.sources, table), output)


@dataclass(frozen=True, eq=False)
class Affine(Pending):
    """A factor and a summand for each channel, as in a batch norm of a tensor that is already quantised. Becomes a depthwise 1x1 convolution."""

    factors: Doubles
    summands: Doubles

    def quantised(self, build: Builder, name: str, output: Quantisation) -> str:
        shape = build.shape(self.sources[0])
        source = build.reshaped(self.sources[0], (*shape, *(1,) * (4 - len(shape))))
        scales = np.maximum(np.abs(self.factors), np.abs(self.factors).max() * 2.0**-10 + 1e-30) / 127
        weights = np.rint(self.factors / scales).astype(np.int8).reshape(1, 1, -1, 1)
        made = WeightedSum((source,), self.low, self.high, weights, scales, self.summands, Window((1, 1)), depthwise=True)
        return build.reshaped(made.quantised(build, name if len(shape) == 4 else f"{name}_image", output), shape)
