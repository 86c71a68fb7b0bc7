"""What is known about the values of an ONNX graph while it is read.

Each value is one of these: a constant; constants with scales (weights); a stored integer tensor, or the real numbers that it represents; an input or a result
that is not quantised yet (`RealInput`, `Pending`); a padded tensor; or a result that the caller computes from an output (softmax).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.errors import ModelError
from ansor.integer.builder import Builder
from ansor.integer.onnx_file import Array, OnnxGraph, OnnxNode
from ansor.integer.pending import Pending
from ansor.integer.rescale import Doubles


@dataclass(frozen=True, eq=False)
class Weights:
    """Quantised constants, which represent scales * (values - zero_points). scales, zero_points: one for each index along `axis`, or one for all."""

    values: Array
    scales: Doubles
    axis: int
    zero_points: Array

    @property
    def real(self) -> Doubles:
        """The real numbers that they represent."""
        shape = [1] * self.values.ndim
        if self.scales.size > 1:
            shape[self.axis] = self.scales.size
        wide: Doubles = (self.values.astype(np.float64) - self.zero_points.astype(np.float64).reshape(shape)) * self.scales.reshape(shape)
        return wide


@dataclass(frozen=True)
class IntegerValue:
    """A value that is an integer tensor, or the real numbers that it represents."""

    tensor: str


@dataclass(frozen=True)
class CallerComputed:
    """A value that the caller has to compute from the tensor with `operator`."""

    tensor: str
    operator: str


@dataclass(frozen=True)
class Padded:
    """A tensor with zeros around its images, which only convolutions can read. padding: top, left, bottom, right."""

    tensor: str
    padding: tuple[int, int, int, int]


@dataclass(frozen=True)
class RealInput:
    """An input of the graph that is not quantised yet. shape: after the reshapes so far."""

    source: str
    shape: tuple[int, ...]


Known = Array | Weights | IntegerValue | Padded | CallerComputed | RealInput | Pending


class Values:
    """The values of one graph by name, and the network that is built from them. Mutable, and private to one reader."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.build = Builder(graph.name)
        self.known: dict[str, Known] = dict(graph.constants)

    def raw(self, name: str) -> RealInput | None:
        """The input of the graph with this name, if it has no value yet; otherwise None."""
        return RealInput(name, tuple(self.graph.inputs[name][0])) if name in self.graph.inputs and name not in self.known else None

    def constant(self, node: OnnxNode, place: int) -> Array:
        """The value of an input that has to be a constant. Raises ModelError if it is not."""
        value = self.known.get(node.inputs[place])
        if isinstance(value, Weights):
            return value.real
        if not isinstance(value, np.ndarray):
            raise ModelError(f"the {node} reads {node.inputs[place]}, which has to be a constant in the file")
        return value

    def stored(self, node: OnnxNode, place: int = 0) -> str:
        """The integer tensor of an input. Raises ModelError if it has none."""
        name = node.inputs[place]
        value = self.known.get(name)
        if isinstance(value, IntegerValue):
            return value.tensor
        if isinstance(value, Pending):
            raise ModelError(f"the {node} reads {name}, which is not quantised: quantise every result (QuantizeLinear, DequantizeLinear) before it is read")
        if isinstance(value, Padded):
            raise ModelError(f"the {node} reads {name}, which is padded; padding is supported only before convolutions")
        if value is None or isinstance(value, RealInput):
            quantise = "quantise the model in QDQ format (QuantizeLinear, DequantizeLinear), as onnxruntime.quantization.quantize_static does"
            raise ModelError(f"the {node} reads {name}, which is unknown or not quantised: {quantise}")
        what = f"the result of {value.operator}" if isinstance(value, CallerComputed) else "a constant"
        raise ModelError(f"the {node} reads {name}, which is {what}; this is not supported")
