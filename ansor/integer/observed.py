"""Observes the ranges of the arrays of a network: PyTorch runs the graph in single precision on the calibration inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch.nn import functional

from ansor.errors import ModelError
from ansor.graph.ir import Graph, Node

Values = dict[str, torch.Tensor]
Ranges = dict[str, tuple[float, float]]


def observed(graph: Graph, samples: Iterable[Sequence[torch.Tensor]]) -> Ranges:
    """The least and the greatest value of every array over all samples, as a range that includes 0. Raises ModelError for values that are not finite."""
    ranges: Ranges = {}
    for sample in samples:
        for name, value in evaluated(graph, sample).items():
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = (min(low, float(value.min())), max(high, float(value.max())))
            if not bool(torch.isfinite(value).all()):
                raise ModelError(f"asked to calibrate with an input for which {name} is not finite; give inputs like those in use")
    return ranges


def evaluated(graph: Graph, inputs: Sequence[torch.Tensor]) -> Values:
    """The inputs, and the results of all nodes. Raises ModelError for operators that are not supported."""
    found: Values = {name: torch.from_numpy(array) for name, array in graph.constants.items()}
    found |= dict(zip(graph.inputs, inputs, strict=True))
    with torch.no_grad():
        for node in graph:
            if node.op not in _FLOATS:
                raise ModelError(f"asked to quantise the {node.op} {node.name}, which is not supported; supported operators: {', '.join(_FLOATS)}")
            found[node.name] = _FLOATS[node.op](node, *(found[name] for name in node.inputs))
    return {name: value for name, value in found.items() if name not in graph.constants}


def _padded(node: Node, x: torch.Tensor, value: float) -> torch.Tensor:
    top, left, bottom, right = node.integers("padding")
    return functional.pad(x, (left, right, top, bottom), value=value) if any((top, left, bottom, right)) else x


def _convolution(node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    strides, dilation = node.integers("strides"), node.integers("dilation")
    return functional.conv2d(_padded(node, x, 0.0), weight, bias, strides, 0, dilation, node.integer("groups"))


def _pool(node: Node, x: torch.Tensor) -> torch.Tensor:
    kernel, strides, dilation = node.integers("kernel"), node.integers("strides"), node.integers("dilation")
    if node.text("kind") == "max":
        return functional.max_pool2d(_padded(node, x, -torch.inf), list(kernel), list(strides), 0, list(dilation))
    return functional.avg_pool2d(_padded(node, x, 0.0), kernel, strides)


def _mean(node: Node, x: torch.Tensor) -> torch.Tensor:
    return x.mean(node.integers("axes"), bool(node.attributes["keepdims"]))


def _clip(node: Node, x: torch.Tensor) -> torch.Tensor:
    low, high = node.attributes["low"], node.attributes["high"]
    return x.clamp(None if low is None else node.number("low"), None if high is None else node.number("high"))


FUNCTIONS: Mapping[str, Callable[[Node, torch.Tensor], torch.Tensor]] = {
    "sigmoid": lambda node, x: torch.sigmoid(x), "tanh": lambda node, x: torch.tanh(x), "silu": lambda node, x: functional.silu(x),
    "hardsigmoid": lambda node, x: functional.hardsigmoid(x), "hardswish": lambda node, x: functional.hardswish(x), "abs": lambda node, x: x.abs(),
    "neg": lambda node, x: -x, "exp": lambda node, x: x.exp(), "leaky_relu": lambda node, x: functional.leaky_relu(x, node.number("slope")),
    "gelu": lambda node, x: functional.gelu(x, approximate=node.text("approximate")),
}  # fmt: skip
"""Element-wise functions, which become lookup tables."""

_FLOATS: Mapping[str, Callable[..., torch.Tensor]] = {
    "conv2d": _convolution, "dense": lambda node, *given: functional.linear(*given), "add": lambda node, *given: given[0] + given[1],
    "sub": lambda node, *given: given[0] - given[1], "concat": lambda node, *given: torch.cat(given, node.integer("axis")),
    "relu": lambda node, x: x.relu(), "clip": _clip, "pool2d": _pool, "mean": _mean, "reshape": lambda node, x: x.reshape(node.shape),
    "softmax": lambda node, x: x.softmax(node.integer("axis")), "log_softmax": lambda node, x: x.log_softmax(node.integer("axis")), **FUNCTIONS,
}  # fmt: skip
