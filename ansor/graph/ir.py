"""The graph of a network: named nodes over named arrays.

    image ─► conv2d ─► batch_norm ─► relu ─► … ─► logits

A `Node` makes one array, which has the node's name. Passes take a `Graph` and return a new one. The values of a node's `op` are listed in
`ELEMENTWISE`, `LAYOUT`, `HEAVY` and `VIEWS` below. In addition, `torch` is a call that runs in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.support.bfloat16 import make_known

Attribute = object  # numbers, text, tuples of them, and `TorchCall` for `torch` nodes: hashable, compared by value
Array = NDArray[np.generic]

UNARY = frozenset({
    "abs", "ceil", "clip", "cos", "elu", "erf", "exp", "floor", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "log", "log2", "logical_not",
    "neg", "relu", "round", "rsqrt", "sigmoid", "silu", "sin", "sqrt", "softplus", "tanh", "trunc", "cast",
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "exp2", "log10", "log1p", "sinh", "tan",
    "digamma", "erfc", "erfinv", "lgamma", "expm1", "sign", "isfinite",
    "bitwise_not", "dequantise",
})
BINARY = frozenset({
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
    "atan2", "copysign", "hypot", "nextafter", "floor_divide", "fmod", "remainder", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
})
ELEMENTWISE = UNARY | BINARY | {"where", "quantise"}  # one output element from the same element of each operand, with broadcasting
LAYOUT = frozenset({"transpose", "pad", "concat", "slice", "embedding", "expand", "index", "gather"})  # moves elements, computes nothing
HEAVY = frozenset({  # has a reduction, or prepares one
    "conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose", "dense", "integer_dense", "batch_matmul", "pool1d", "pool2d",
    "pool3d", "adaptive_pool1d", "adaptive_pool2d", "adaptive_pool3d", "mean", "sum", "max", "min", "prod", "softmax",
    "log_softmax", "layer_norm", "batch_norm", "argmax", "argmin", "cumsum", "cumprod",
})
VIEWS = frozenset({"reshape", "rows", "join"})
"""Nodes that move no data. `rows`: consecutive elements of the first dimension, from `start` on. `join`: its operands one after another; they are computed
in its memory, by nodes that are no views, and are in no other join."""


@dataclass(frozen=True)
class Node:
    """One array and how it is made: by `op` from the arrays named `inputs`. `shape` in elements; `dtype` as PyTorch and NumPy spell it."""

    name: str
    op: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def integers(self, key: str) -> tuple[int, ...]:
        """An attribute that is a tuple of integers."""
        value = self.attributes[key]
        assert isinstance(value, tuple)
        return tuple(int(part) for part in value)

    def integer(self, key: str) -> int:
        value = self.attributes[key]
        assert isinstance(value, int)
        return value

    def number(self, key: str) -> float:
        value = self.attributes[key]
        assert isinstance(value, (int, float))
        return value

    def text(self, key: str) -> str:
        value = self.attributes[key]
        assert isinstance(value, str)
        return value

    def having(self, **attributes: Attribute) -> Node:
        """The same node with some attributes changed."""
        return replace(self, attributes={**self.attributes, **attributes})

    def __str__(self) -> str:
        given = [f"%{name}" for name in self.inputs] + [f"{key}={value}" for key, value in self.attributes.items()]
        return f"%{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}] = {self.op}({', '.join(given)})"


@dataclass(frozen=True)
class Value:
    """The shape and dtype of an array, which are known without computing it."""

    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        make_known(self.dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Graph:
    """Nodes in execution order, with the network's inputs (name -> shape and dtype), its constants, and its outputs (names, repeats allowed)."""

    inputs: Mapping[str, Value]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    def value(self, name: str) -> Value:
        """Shape and dtype of any array of the graph."""
        return self.values[name]

    @cached_property
    def values(self) -> dict[str, Value]:
        """Shape and dtype of every array."""
        found = dict(self.inputs)
        found.update((name, Value(array.shape, str(array.dtype))) for name, array in self.constants.items())
        found.update((node.name, Value(node.shape, node.dtype)) for node in self.nodes)
        return found

    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that read each array. Arrays that no node reads are left out."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def pruned(self) -> Graph:
        """The graph without nodes and constants that no output needs. Inputs stay: they are the network's signature."""
        needed = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if node.name in needed:
                kept.append(node)
                needed.update(node.inputs)
        constants = {name: array for name, array in self.constants.items() if name in needed}
        return Graph(self.inputs, constants, tuple(reversed(kept)), self.outputs)

    def checked(self) -> Graph:
        """The graph itself. Raises ModelError unless every array is made once, and before it is read; otherwise a pass has a mistake."""
        known = set(self.inputs) | set(self.constants)
        for node in self.nodes:
            missing = [name for name in node.inputs if name not in known]
            if missing or node.name in known:
                raise ModelError(f"the graph is broken at `{node}`: " + (f"{missing} is not made yet" if missing else "its name is taken"))
            known.add(node.name)
        lost = [name for name in self.outputs if name not in known]
        if lost:
            raise ModelError(f"the graph is broken: nothing makes its outputs {lost}")
        return self

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        head = [f"%{name}: {value.dtype}[{', '.join(map(str, value.shape))}] = input" for name, value in self.inputs.items()]
        return "\n".join([*head, *map(str, self.nodes), "return " + ", ".join(f"%{name}" for name in self.outputs)])


class Rewriter:
    """Builds a new graph from an old one, node by node. Keeps names unique, and forwards readers of a replaced array to its replacement.

    Mutable, and private to one run of one pass.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values = dict(graph.values)
        self._taken = set(self.values)
        self._constants = dict(graph.constants)
        self._nodes: list[Node] = []
        self._forward: dict[str, str] = {}

    def now(self, name: str) -> str:
        """The new graph's name for the array `name` of the old one."""
        return self._forward.get(name, name)

    def constant_array(self, name: str) -> Array | None:
        """The value of an array of the new graph if it is a constant, else None."""
        return self._constants.get(name)

    def keep(self, node: Node) -> None:
        """Adds a node of the old graph, with its inputs under their names in the new one."""
        self.add(replace(node, inputs=tuple(map(self.now, node.inputs))))

    def add(self, node: Node) -> str:
        """Adds a node whose inputs are names of the new graph, and returns its name."""
        self._nodes.append(node)
        self.values[node.name] = Value(node.shape, node.dtype)
        self._taken.add(node.name)
        return node.name

    def constant(self, hint: str, array: Array) -> str:
        """Adds a constant and returns its name."""
        name = self.fresh(hint)
        self._constants[name] = array
        self.values[name] = Value(array.shape, str(array.dtype))
        return name

    def reshaped(self, name: str, shape: tuple[int, ...], hint: str) -> str:
        """The name of an array of the new graph in another shape: itself, a constant, or a new node, whose name starts with `hint`."""
        value = self.values[name]
        if value.shape == shape:
            return name
        if name in self._constants:
            return self.constant(hint, self._constants[name].reshape(shape))
        return self.add(Node(self.fresh(hint), "reshape", (name,), shape, value.dtype))

    def forward(self, old: str, new: str) -> None:
        """Makes later readers of `old` read `new`."""
        self._forward[old] = new

    def fresh(self, hint: str) -> str:
        """An unused name, starting with `hint`."""
        name = unused(hint, self._taken)
        self._taken.add(name)
        return name

    def finished(self) -> Graph:
        """The new graph, without nodes and constants that no output needs."""
        outputs = tuple(map(self.now, self.graph.outputs))
        return Graph(self.graph.inputs, self._constants, tuple(self._nodes), outputs).pruned().checked()


def unused(hint: str, taken: Iterable[str]) -> str:
    """`hint`, or `hint_1`, `hint_2`, … whichever is not in `taken`."""
    names = taken if isinstance(taken, (set, dict)) else set(taken)
    if hint not in names:
        return hint
    count = 1
    while f"{hint}_{count}" in names:
        count += 1
    return f"{hint}_{count}"


def moves_nothing(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """True if transposing an array of this shape leaves its elements in order: only dimensions of extent 1 change places."""
    moved = [axis for axis in axes if shape[axis] != 1]
    return moved == sorted(moved)
