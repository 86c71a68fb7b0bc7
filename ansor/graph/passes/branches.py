"""Computes a sum of convolutions of the same data, with constant weights, as one convolution.

    conv(x, a) + conv(x, b) + x * scale + shift      becomes      conv(x, a + b + diagonal(scale), bias + shift)

Networks that are trained with parallel branches have such sums: RepVGG (Ding et al. 2021), MobileOne (Vasu et al. 2023). A small kernel is added to those
elements of a larger one that read the same data. Weights are added in double precision and rounded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from ansor.graph.ir import Array, Graph, Node, Rewriter
from ansor.graph.passes.padding import CONVOLUTIONS

Doubles = NDArray[np.float64]
DTYPES = ("float32", "float64")


def fold_branches(graph: Graph) -> Graph:
    """The graph with sums of convolutions of the same data as one convolution each."""
    if not any(node.op in CONVOLUTIONS for node in graph):
        return graph
    sums = _Sums(graph)
    write = Rewriter(graph)
    for node in graph:
        leaves = sums.leaves(node)
        folded = None if leaves is None else _folded(sums, node, leaves)
        if leaves is None or folded is None:
            write.keep(node)
        else:
            _write(write, node, folded)
    return write.finished()


@dataclass(frozen=True)
class _Folded:
    """A convolution with the weights and the bias of a sum, and what else is in the sum."""

    base: Node
    weight: Doubles
    bias: Doubles
    rest: tuple[str, ...]


class _Sums:
    """Sums of two or more arrays, which a graph writes as additions of two."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made: Mapping[str, Node] = {node.name: node for node in graph}
        self.uses = Counter(name for node in graph for name in node.inputs) + Counter(graph.outputs)
        self.consumers = graph.consumers()

    def private(self, name: str) -> Node | None:
        """The node that makes an array that is read once."""
        return self.made.get(name) if self.uses[name] == 1 and name in self.consumers else None

    def leaves(self, node: Node) -> list[str] | None:
        """What a sum adds up; None for a node that is no sum, or a part of another one."""
        if node.op != "add" or node.dtype not in DTYPES:
            return None
        if self.private(node.name) is not None and self._continues(self.consumers[node.name][0], node):
            return None
        found, waiting = [], [*reversed(node.inputs)]
        while waiting:
            name = waiting.pop()
            one = self.private(name)
            if one is not None and self._continues(node, one):
                waiting.extend(reversed(one.inputs))
            else:
                found.append(name)
        return found

    def _continues(self, root: Node, node: Node) -> bool:
        return root.op == node.op == "add" and (root.shape, root.dtype) == (node.shape, node.dtype)


def _folded(sums: _Sums, root: Node, leaves: Sequence[str]) -> _Folded | None:
    """A sum with its convolutions of one array as one of them; None if there is nothing to fold."""
    branches = [node for name in leaves if (node := _branch(sums, root, name)) is not None]
    for base in sorted(branches, key=lambda node: -prod(_kernel(sums, node))):
        weight, bias, rest = _weight(sums, base).astype(np.float64), _bias(sums, base), list(leaves)
        rest.remove(base.name)
        found = False
        for name in tuple(rest):
            part = _part(sums, root, base, name)
            if part is not None:
                weight, bias, found = weight + part[0], bias + part[1], True
                rest.remove(name)
        if found:
            shifts = [name for name in rest if _is_per_channel(sums, root, name)]
            bias = bias + sum(sums.graph.constants[name].astype(np.float64).reshape(-1) for name in shifts)
            return _Folded(base, weight, bias, tuple(name for name in rest if name not in shifts))
    return None


def _branch(sums: _Sums, root: Node, name: str) -> Node | None:
    """A convolution with constant weights that only the sum reads."""
    node = sums.private(name)
    constant = node is not None and node.op in CONVOLUTIONS and all(one in sums.graph.constants for one in node.inputs[1:])
    return node if node is not None and constant and (node.shape, node.dtype) == (root.shape, root.dtype) else None


def _part(sums: _Sums, root: Node, base: Node, name: str) -> tuple[Doubles, Doubles] | None:
    """What an array of a sum adds to the weights and the bias of the convolution `base`; None if it is no function of the same data, or reads more of it."""
    other = _branch(sums, root, name)
    if other is None:
        weight = _diagonal(sums, root, base, name)
        return None if weight is None else (weight, np.zeros(root.shape[1]))
    same = other.inputs[0] == base.inputs[0] and all(other.attributes[key] == base.attributes[key] for key in ("strides", "groups"))
    places = _places(sums, base, other) if same else None
    if places is None:
        return None
    shape = _weight(sums, base).shape
    weight = np.zeros(shape)
    weight[np.ix_(range(shape[0]), range(shape[1]), *places)] = _weight(sums, other)
    return weight, _bias(sums, other)


def _diagonal(sums: _Sums, root: Node, base: Node, name: str) -> Doubles | None:
    """The weights that make an array of a sum, if it is the data of `base`, or this times a constant for each channel."""
    scale = _scale(sums, root, base, name)
    shape, steps = _weight(sums, base).shape, base.integers("dilation")
    taps, beside = zip(*map(divmod, base.integers("padding")[: len(steps)], steps), strict=True)
    if scale is None or any(beside) or any(tap >= size for tap, size in zip(taps, shape[2:], strict=True)):
        return None
    weight, channels = np.zeros((shape[0], shape[1], prod(shape[2:]))), np.arange(shape[0])
    weight[channels, channels % shape[1], np.ravel_multi_index(taps, shape[2:])] = scale
    return weight.reshape(shape)


def _scale(sums: _Sums, root: Node, base: Node, name: str) -> Doubles | None:
    """The factor of each channel, if an array of a sum is the data of `base`, or the data times constants, element by element."""
    data = base.inputs[0]
    if sums.graph.value(data).shape != root.shape or any(step != 1 for step in base.integers("strides")):
        return None
    if name == data:
        return np.ones(root.shape[1])
    node = sums.private(name)
    if node is None or node.op != "mul" or data not in node.inputs or node.shape != root.shape:
        return None
    factor = node.inputs[1] if node.inputs[0] == data else node.inputs[0]
    return sums.graph.constants[factor].astype(np.float64).reshape(-1) if _is_per_channel(sums, root, factor) else None


def _is_per_channel(sums: _Sums, root: Node, name: str) -> bool:
    """Whether an array is a constant for each channel."""
    array = sums.graph.constants.get(name)
    if array is None or str(array.dtype) != root.dtype:
        return False
    rank = len(root.shape)
    return (1,) * (rank - array.ndim) + array.shape == (1, root.shape[1], *(1,) * (rank - 2))


def _places(sums: _Sums, base: Node, other: Node) -> list[list[int]] | None:
    """For each spatial dimension, the index in the kernel of `base` for each index of the other kernel; None if it reads what `base` does not."""
    found = []
    for axis, (size, most) in enumerate(zip(_kernel(sums, other), _kernel(sums, base), strict=True)):
        step, ahead = base.integers("dilation")[axis], base.integers("padding")[axis] - other.integers("padding")[axis]
        places = [index * other.integers("dilation")[axis] + ahead for index in range(size)]
        if any(place % step or not 0 <= place // step < most for place in places):
            return None
        found.append([place // step for place in places])
    return found


def _weight(sums: _Sums, node: Node) -> Array:
    return sums.graph.constants[node.inputs[1]]


def _kernel(sums: _Sums, node: Node) -> tuple[int, ...]:
    return _weight(sums, node).shape[2:]


def _bias(sums: _Sums, node: Node) -> Doubles:
    return sums.graph.constants[node.inputs[2]].astype(np.float64) if len(node.inputs) > 2 else np.zeros(node.shape[1])


def _write(write: Rewriter, root: Node, folded: _Folded) -> None:
    """Write the convolution, and add what is left."""
    base = folded.base
    constants = [write.constant(f"{base.name}_{what}", array.astype(root.dtype)) for what, array in (("weight", folded.weight), ("bias", folded.bias))]
    whole = replace(base, name=write.fresh(f"{base.name}_branches") if folded.rest else root.name, inputs=(write.now(base.inputs[0]), *constants))
    total = write.add(whole)
    for place, name in enumerate(folded.rest, 1):
        last = place == len(folded.rest)
        total = write.add(Node(root.name if last else write.fresh(root.name), "add", (total, write.now(name)), root.shape, root.dtype))
