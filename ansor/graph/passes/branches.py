"""Computes a sum of convolutions of the same data, with constant weights, as one convolution.

    conv(x, a) + conv(x, b) + x * scale + shift      becomes      conv(x, a + b + diagonal(scale), bias + shift)

Networks that are trained with parallel branches have such sums: RepVGG (Ding et al. 2021), MobileOne (Vasu et al. 2023). A small kernel is added to those
elements of a larger one that read the same data. Weights are added in double precision and rounded once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ansor.graph.ir import Array, Graph, Node, Rewriter
from ansor.graph.passes.batch_norm import Doubles
from ansor.graph.passes.padding import CONVOLUTIONS

DTYPES = ("float32", "float64")


def fold_branches(graph: Graph) -> Graph:
    """The graph with the convolutions of the same data in each sum as one convolution."""
    if not any(node.op in CONVOLUTIONS for node in graph):
        return graph
    sums = _Sums(graph)
    write = Rewriter(graph)
    for node in graph:
        total = sums.total(node)
        shorter = None if total is None else _shorter(sums, node, total)
        if shorter is None:
            write.keep(node)
        else:
            _write(write, node, shorter)
    return write.finished()


@dataclass(frozen=True)
class _Total:
    """What a sum adds up: arrays, by name, and a number."""

    terms: tuple[str, ...]
    number: float


@dataclass(frozen=True)
class _Whole:
    """The convolution `base` with the weights and the bias of several terms. terms: their names."""

    base: Node
    weight: Doubles
    bias: Doubles
    terms: tuple[str, ...]


@dataclass(frozen=True)
class _Shorter:
    """A sum of convolutions, and of terms that stay."""

    wholes: tuple[_Whole, ...]
    rest: tuple[str, ...]


class _Sums:
    """The sums of a graph, which writes them as additions of two arrays, or of an array and a number."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made: Mapping[str, Node] = {node.name: node for node in graph}
        self.uses = Counter(name for node in graph for name in node.inputs) + Counter(graph.outputs)
        self.consumers = graph.consumers()

    def private(self, name: str) -> Node | None:
        """The node that makes an array that is read once."""
        return self.made.get(name) if self.uses[name] == 1 and name in self.consumers else None

    def total(self, node: Node) -> _Total | None:
        """What a sum adds up; None for a node that is no sum, or a part of another one."""
        if node.op != "add" or node.dtype not in DTYPES:
            return None
        if self.private(node.name) is not None and _continues(self.consumers[node.name][0], node):
            return None
        number, terms, waiting = _number(node), [], [*reversed(node.inputs)]
        while waiting:
            name = waiting.pop()
            one = self.private(name)
            if one is not None and _continues(node, one):
                number += _number(one)
                waiting.extend(reversed(one.inputs))
            else:
                terms.append(name)
        return _Total(tuple(terms), number)


def _continues(root: Node, node: Node) -> bool:
    return root.op == node.op == "add" and (root.shape, root.dtype) == (node.shape, node.dtype)


def _number(node: Node) -> float:
    """The number that a node adds to an array."""
    return float(node.number("scalar")) if "scalar" in node.attributes else 0.0


@np.errstate(invalid="ignore")  # sums of infinite weights are found by `_fits`
def _shorter(sums: _Sums, root: Node, total: _Total) -> _Shorter | None:
    """A sum with fewer terms; None if no convolution can do the work of another term, or if weights would be too large for their type."""
    wholes, rest = [], list(total.terms)
    for branches in _branches(sums, root, total.terms):
        while branches:
            whole = _whole(sums, root, branches, rest)
            branches = [node for node in branches[1:] if whole is None or node.name not in whole.terms]
            if whole is not None:
                wholes.append(whole)
                rest = _without(rest, whole.terms)
    if not wholes:
        return None
    shifts = {name: numbers for name in rest if (numbers := _per_channel(sums, root, name)) is not None}
    shift = sum((shifts[name] for name in rest if name in shifts), start=np.full(root.shape[1], total.number))
    wholes[0] = replace(wholes[0], bias=wholes[0].bias + shift)
    fits = all(_fits(array, root.dtype) for whole in wholes for array in (whole.weight, whole.bias))
    return _Shorter(tuple(wholes), tuple(name for name in rest if name not in shifts)) if fits else None


def _fits(array: Doubles, dtype: str) -> bool:
    """Whether all are finite numbers of a type."""
    return bool(np.all(np.abs(array) <= np.finfo(dtype).max))


def _without(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """The names, each of `taken` removed once."""
    left = list(names)
    for name in taken:
        left.remove(name)
    return left


def _branches(sums: _Sums, root: Node, terms: Iterable[str]) -> list[list[Node]]:
    """The convolutions of a sum that have constant weights, and that nothing else reads. Those of the same data with the same strides and groups are together,
    the largest kernel first."""
    found: dict[object, list[Node]] = defaultdict(list)
    for name in terms:
        node = sums.private(name)
        if node is None or node.op not in CONVOLUTIONS or node.shape != root.shape:
            continue
        if all(one in sums.graph.constants for one in node.inputs[1:]):
            found[node.inputs[0], node.attributes["strides"], node.attributes["groups"]].append(node)
    return [sorted(nodes, key=lambda node: -prod(_kernel(sums, node))) for nodes in found.values()]


def _whole(sums: _Sums, root: Node, branches: Sequence[Node], rest: Iterable[str]) -> _Whole | None:
    """The first branch with all terms that its kernel can compute: other branches, and the data itself. None if there are none."""
    base, *others = branches
    parts = [(node, places) for node in others if (places := _places(sums, base, node)) is not None]
    middle = _middle(sums, root, base)
    scales = [] if middle is None else [(name, scale, middle) for name in rest if (scale := _scale(sums, root, base, name)) is not None]
    if not parts and not scales:
        return None
    weight, bias = _weight(sums, base).astype(np.float64), _bias(sums, base)
    outputs, inputs = weight.shape[:2]
    for node, places in parts:
        weight[np.ix_(range(outputs), range(inputs), *places)] += _weight(sums, node).astype(np.float64)
        bias = bias + _bias(sums, node)
    channels = np.arange(outputs)
    for _, scale, place in scales:
        weight[(channels, channels % inputs, *place)] += scale
    return _Whole(base, weight, bias, (base.name, *(node.name for node, _ in parts), *(name for name, *_ in scales)))


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


def _middle(sums: _Sums, root: Node, base: Node) -> list[int] | None:
    """The index in a kernel of the element that is multiplied with the data at the place of the result; None if there is none, as with strides."""
    if sums.graph.value(base.inputs[0]).shape != root.shape or any(step != 1 for step in base.integers("strides")):
        return None
    found = []
    for size, ahead, step in zip(_kernel(sums, base), base.integers("padding"), base.integers("dilation"), strict=False):  # padding: also behind
        place, beside = divmod(ahead, step)
        if beside or not 0 <= place < size:
            return None
        found.append(place)
    return found


def _scale(sums: _Sums, root: Node, base: Node, name: str) -> Doubles | None:
    """The factor of each channel, if a term is the data of `base`, or the data times constants for each channel, or times a number."""
    data, channels = base.inputs[0], root.shape[1]
    if name == data:
        return np.ones(channels)
    node = sums.private(name)
    if node is None or node.op != "mul" or data not in node.inputs:
        return None
    if "scalar" in node.attributes:
        return np.full(channels, float(node.number("scalar")))
    factor = node.inputs[1] if node.inputs[0] == data else node.inputs[0]
    return _per_channel(sums, root, factor)


def _per_channel(sums: _Sums, root: Node, name: str) -> Doubles | None:
    """The numbers of an array that is a constant for each channel, or for all."""
    array, rank = sums.graph.constants.get(name), len(root.shape)
    if array is None or (array.size > 1 and array.shape[-rank + 1 :] != (array.size, *(1,) * (rank - 2))):
        return None
    return np.broadcast_to(array.astype(np.float64).reshape(-1), root.shape[1])


def _weight(sums: _Sums, node: Node) -> Array:
    return sums.graph.constants[node.inputs[1]]


def _kernel(sums: _Sums, node: Node) -> tuple[int, ...]:
    return _weight(sums, node).shape[2:]


def _bias(sums: _Sums, node: Node) -> Doubles:
    return sums.graph.constants[node.inputs[2]].astype(np.float64) if len(node.inputs) > 2 else np.zeros(node.shape[1])


def _write(write: Rewriter, root: Node, shorter: _Shorter) -> None:
    """Write the convolutions, and the sum of them and of what is left."""
    alone = len(shorter.wholes) == 1 and not shorter.rest
    terms = [_written(write, root, whole, root.name if alone else write.fresh(f"{whole.base.name}_branches")) for whole in shorter.wholes]
    terms += map(write.now, shorter.rest)
    total = terms[0]
    for place, term in enumerate(terms[1:], 2):
        name = root.name if place == len(terms) else write.fresh(root.name)
        total = write.add(Node(name, "add", (total, term), root.shape, root.dtype))


def _written(write: Rewriter, root: Node, whole: _Whole, name: str) -> str:
    arrays = (("weight", whole.weight), ("bias", whole.bias))
    constants = [write.constant(f"{whole.base.name}_{what}", array.astype(root.dtype)) for what, array in arrays]
    return write.add(replace(whole.base, name=name, inputs=(write.now(whole.base.inputs[0]), *constants)))
