"""What is known about the values of an ONNX graph while it is read.

Each is one of these: a constant; constants with scales (weights); a stored integer tensor, or the real numbers that it stands for; a real result that is not
quantised yet (`pending`); a padded tensor; or what comes after the outputs and is left to the caller (softmax).
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
    """Quantised constants: `values` stand for scales * values; scales along `axis`, or one."""

    values: Array
    scales: Doubles
    axis: int
    zero_points: Array

    @property
    def real(self) -> Doubles:
        """What they stand for."""
        shape = [1] * self.values.ndim
        if self.scales.size > 1:
            shape[self.axis] = self.scales.size
        wide: Doubles = (self.values.astype(np.float64) - self.zero_points.astype(np.float64).reshape(shape)) * self.scales.reshape(shape)
        return wide


@dataclass(frozen=True)
class IntegerValue:
    """A value that is an integer tensor, or the real numbers that it stands for."""

    tensor: str


@dataclass(frozen=True)
class CallerComputed:
    """A value that the caller has to compute from the tensor, by `operator`."""

    tensor: str
    operator: str


@dataclass(frozen=True)
class Padded:
    """A tensor with zeros around its images, which only convolutions read; padding: top, left, bottom, right."""

    tensor: str
    padding: tuple[int, int, int, int]


@dataclass(frozen=True)
class RealInput:
    """An input of the graph that is not quantised yet, under another shape."""

    source: str
    shape: tuple[int, ...]


Known = Array | Weights | IntegerValue | Padded | CallerComputed | RealInput | Pending


class Values:
    """The values of one graph by their names, and the network that is built from them. Mutable, and private to one reader."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.build = Builder(graph.name)
        self.known: dict[str, Known] = dict(graph.constants)

    def raw(self, name: str) -> RealInput | None:
        """An input of the graph about which nothing is known yet; None for anything else."""
        return RealInput(name, tuple(self.graph.inputs[name][0])) if name in self.graph.inputs and name not in self.known else None

    def constant(self, node: OnnxNode, place: int) -> Array:
        """An input that has to be a constant."""
        value = self.known.get(node.inputs[place])
        if isinstance(value, Weights):
            return value.real
        if not isinstance(value, np.ndarray):
            raise ModelError(f"the {node} reads {node.inputs[place]}, which has to be a constant of the file")
        return value

    def stored(self, node: OnnxNode, place: int = 0) -> str:
        """The integer tensor that an input stands for."""
        name = node.inputs[place]
        value = self.known.get(name)
        if isinstance(value, IntegerValue):
            return value.tensor
        if isinstance(value, Pending):
            raise ModelError(f"the {node} reads {name}, which is not quantised: quantise every result (QuantizeLinear, DequantizeLinear) before it is read")
        if isinstance(value, Padded):
            raise ModelError(f"the {node} reads {name}, which is padded; padding is supported before convolutions")
        if value is None or isinstance(value, RealInput):
            quantise = "quantise the model in QDQ format (QuantizeLinear, DequantizeLinear), as onnxruntime.quantization.quantize_static does"
            raise ModelError(f"the {node} reads {name}, which is not known, or not quantised: {quantise}")
        what = f"the result of {value.operator}" if isinstance(value, CallerComputed) else "a constant"
        raise ModelError(f"the {node} reads {name}, which is {what}; this is not supported")
