"""Quantises PyTorch modules to integer networks after training, from the value ranges observed in a calibration.

Weights are int8 and symmetric, with a scale for each output. Biases are int32. Activations are int8, with a scale and a zero point for each tensor, computed
from its least and greatest values in the calibration. Batch norms are folded into the weights first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.graph.from_torch import from_torch as graph_of
from ansor.graph.ir import Graph, Node
from ansor.graph.passes.batch_norm import fold_batch_norm
from ansor.graph.passes.padding import fold_padding
from ansor.integer.builder import Builder
from ansor.integer.network import IntegerNetwork, Quantisation
from ansor.integer.observed import FUNCTIONS, Ranges, observed
from ansor.integer.operators import Window
from ansor.integer.pending import Average, Concatenation, Function, Maximum, Pending, Sum, WeightedSum
from ansor.integer.rescale import Doubles
from ansor.support.text import with_article

FREE = (-math.inf, math.inf)
LEFT_OUT = ("softmax", "log_softmax")
SPREAD = 3
"""The largest ratio of a layer's output scales, in bits, if scales are powers of two. Sums are shifted by up to this many bits and have to fit into 32."""


def from_torch(model: object, calibration: Sequence[object], name: str = "network", *, powers_of_two: bool = False) -> IntegerNetwork:
    """Quantise a module.

    calibration: sample inputs like those in use, each a tensor or a tuple of tensors; the first one sets the shapes. powers_of_two: make all scales powers of
    two and all zero points 0, so that rescaling is a shift. Raises ModelError if there are no inputs, or an operator is not supported.
    """
    samples = _samples(calibration)
    read = graph_of(model, samples[0])
    if read.torch_calls:
        operator, reason = next(iter(read.torch_calls.items()))
        raise ModelError(f"asked to quantise a model that calls {operator}, which is not supported ({reason})")
    graph = fold_padding(fold_batch_norm(read.graph))
    return _Quantiser(graph, observed(graph, samples), name, powers_of_two).network()


def _samples(calibration: Sequence[object]) -> list[tuple[torch.Tensor, ...]]:
    """The inputs of each calibration run. Raises ModelError unless they are a list of tensors, or of tuples of tensors."""
    wanted = "give a list of tensors, or of tuples of tensors, like those in use"
    if isinstance(calibration, torch.Tensor):
        raise ModelError(f"asked to quantise a model with one tensor as calibration inputs; {wanted}")
    samples = [tuple(one) if isinstance(one, (tuple, list)) else (one,) for one in calibration]
    if not samples:
        raise ModelError(f"asked to quantise a model without calibration inputs; {wanted}")
    for part in (part for sample in samples for part in sample):
        if not isinstance(part, torch.Tensor):
            raise ModelError(f"asked to quantise a model with {with_article(type(part).__name__)} among the calibration inputs; {wanted}")
    return samples


def quantisation_of(low: float, high: float, powers_of_two: bool = False) -> Quantisation:
    """The quantisation of a tensor with values from low <= 0 to high >= 0."""
    if powers_of_two:
        return Quantisation(float(_next_power(max(high, -low, 1e-6) / 127)), 0)
    scale = float(np.float32(max(high - low, 1e-6) / 255))
    return Quantisation(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def quantised_weights(weights: NDArray[np.generic], powers_of_two: bool = False) -> tuple[NDArray[np.int8], Doubles]:
    """The weights as int8, and the scale of each output (the first dimension)."""
    flat = weights.astype(np.float64).reshape(len(weights), -1)
    scales = np.maximum(np.abs(flat).max(axis=1), 1e-9) / 127
    if powers_of_two:
        scales = _next_power(np.maximum(scales, scales.max() * 2.0**-SPREAD))
    return np.rint(flat / scales[:, None]).astype(np.int8).reshape(weights.shape), scales


def _next_power(scales: float | Doubles) -> Doubles:
    """The scales, rounded up to powers of two."""
    return np.asarray(2.0 ** np.ceil(np.log2(scales)))


class _Quantiser:
    """Walks one graph. Mutable, and private to one call of `from_torch`."""

    def __init__(self, graph: Graph, ranges: Ranges, name: str, powers_of_two: bool) -> None:
        self.graph, self.ranges, self.powers = graph, ranges, powers_of_two
        self.build = Builder(name)
        self.consumers = graph.consumers()
        self.stored: dict[str, str] = {}  # array of the graph -> integer tensor
        self.pending: dict[str, Pending] = {}

    def network(self) -> IntegerNetwork:
        for name, value in self.graph.inputs.items():
            self.stored[name] = self.build.input(name, value.shape, quantisation_of(*self.ranges[name], self.powers))
        outputs = list(self.graph.outputs)
        for node in self.graph:
            if node.op in LEFT_OUT and node.name in outputs and node.name not in self.consumers:
                outputs[outputs.index(node.name)] = node.inputs[0]
                self.build.left_out.append(node.op)
            elif node.op == "reshape":
                self.stored[node.name] = self.build.reshaped(self._source(node), node.shape)
            else:
                self._take(node, self._made(node))
        lost = [name for name in outputs if name not in self.stored]
        if lost:
            raise ModelError(f"asked to quantise a model whose output {lost[0]} is a constant; leave it out")
        return self.build.network([self.stored[name] for name in outputs])

    def _take(self, node: Node, made: Pending) -> None:
        """Leave a result pending if a ReLU or a clip is its only reader; quantise any other."""
        readers = self.consumers.get(node.name, [])
        if len(readers) == 1 and readers[0].op in ("relu", "clip") and node.name not in self.graph.outputs:
            self.pending[node.name] = made
            return
        same = isinstance(made, Maximum) and (made.low, made.high) == FREE
        quantisation = self.build.quantisation(made.sources[0]) if same else quantisation_of(*self.ranges[node.name], self.powers)
        self.stored[node.name] = made.quantised(self.build, node.name, quantisation)

    def _source(self, node: Node, place: int = 0) -> str:
        name = node.inputs[place]
        if name not in self.stored:
            what = "a constant" if name in self.graph.constants else "a softmax" if name not in self.pending else "also read by a rectifier"
            raise ModelError(f"asked to quantise the {node.op} {node.name}, which reads {name}, {what}; this is not supported")
        return self.stored[name]

    def _made(self, node: Node) -> Pending:
        if node.op in ("relu", "clip"):
            return self._limited(node)
        if node.op in ("conv2d", "dense"):
            return self._weighted(node)
        if node.op in ("add", "sub"):
            return self._sum(node, 1 if node.op == "add" else -1)
        if node.op == "concat":
            return Concatenation(tuple(self._source(node, place) for place in range(len(node.inputs))), *FREE, node.integer("axis"))
        if node.op in FUNCTIONS:
            return Function((self._source(node),), *FREE, lambda values: FUNCTIONS[node.op](node, torch.from_numpy(values)).numpy())
        source, image = self._source(node), self.graph.value(node.inputs[0]).shape
        if node.op == "mean" and len(image) == 4 and node.integers("axes") == (2, 3):
            return Average((source,), *FREE, Window((image[2], image[3])), flat=not node.attributes["keepdims"])
        if node.op == "pool2d":
            return self._pool(node, source)
        axes = f" over {node.integers('axes')}" if node.op == "mean" else ""
        raise ModelError(f"asked to quantise the {node.op} {node.name} of {list(image)}{axes}, which is not supported")

    def _limited(self, node: Node) -> Pending:
        low, high = (0.0, math.inf)
        if node.op == "clip":
            low, high = (default if node.attributes[key] is None else node.number(key) for key, default in (("low", -math.inf), ("high", math.inf)))
        before = self.pending.get(node.inputs[0])
        return before.limited(low, high) if before is not None else Function((self._source(node),), low, high, lambda values: values)

    def _sum(self, node: Node, sign: int) -> Pending:
        sources = (self._source(node, 0), self._source(node, 1)) if len(node.inputs) == 2 else ()
        shapes = {self.graph.value(name).shape for name in node.inputs}
        if not sources or len(shapes) != 1:
            raise ModelError(f"asked to quantise the addition {node.name} of {' and '.join(map(str, shapes))}; only two tensors of one shape are supported")
        return Sum(sources, *FREE, sign)

    def _weighted(self, node: Node) -> Pending:
        if any(name not in self.graph.constants for name in node.inputs[1:]):
            raise ModelError(f"asked to quantise the {node.op} {node.name}, whose weights are computed; only constant weights are supported")
        weights, scales = quantised_weights(self.graph.constants[node.inputs[1]], self.powers)
        bias = self.graph.constants[node.inputs[2]].astype(np.float64) if len(node.inputs) > 2 else np.zeros(len(weights))
        source = self._source(node)
        if node.op == "dense":
            if len(node.shape) != 2:
                raise ModelError(f"asked to quantise the dense layer {node.name} of {len(node.shape)} dimensions; only 2 are supported")
            return WeightedSum((source,), *FREE, np.ascontiguousarray(weights.T), scales, bias)
        groups, channels = node.integer("groups"), self.graph.value(node.inputs[0]).shape[1]
        depthwise = groups > 1 and groups == channels
        stored = weights.transpose(2, 3, 1, 0)
        if depthwise:
            stored = weights.reshape(groups, -1, *weights.shape[2:]).transpose(2, 3, 0, 1)
        window = replace(_window(node, (weights.shape[2], weights.shape[3])), groups=1 if depthwise else groups)
        return WeightedSum((source,), *FREE, np.ascontiguousarray(stored), scales, bias, window, depthwise)

    def _pool(self, node: Node, source: str) -> Pending:
        kernel = node.integers("kernel")
        window = _window(node, (kernel[0], kernel[1]))
        height, width = self.graph.value(node.inputs[0]).shape[2:]
        if window.output(height, width) != node.shape[2:]:
            raise ModelError(f"asked to quantise the pool {node.name} with ceil_mode, whose windows extend beyond the image; only windows inside are supported")
        if node.text("kind") == "max":
            return Maximum((source,), *FREE, window)
        if any(window.padding) and not node.attributes["count_include_pad"] or window.dilation != (1, 1):
            raise ModelError(f"asked to quantise the pool {node.name}, whose means leave out the padding; only count_include_pad=True is supported")
        return Average((source,), *FREE, window)


def _window(node: Node, kernel: tuple[int, int]) -> Window:
    strides, padding, dilation = node.integers("strides"), node.integers("padding"), node.integers("dilation")
    return Window(kernel, (strides[0], strides[1]), (padding[0], padding[1], padding[2], padding[3]), (dilation[0], dilation[1]))
