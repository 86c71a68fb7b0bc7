"""Translates ATen calls into nodes of a graph: the call, the builder that takes the nodes, and the table of translations.

A translation is a function registered for the operators that it handles:

    @translates("aten.relu.default")
    def relu(call: AtenCall, build: Builder) -> str: ...

It adds nodes to the builder and returns the name of the result; for an operator with several results it returns a list, with None for a result that it
leaves out. Otherwise it raises `Unsupported` with a reason, and the call runs in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray

from ansor.graph.dtypes import OF_KERNELS
from ansor.graph.ir import Array, Attribute, Graph, Node, Value, moves_nothing, unused


class Unsupported(Exception):
    """This call has no translation into nodes; the text says why and, after a semicolon, what to do about it if something can be done."""


NO_TRANSLATION = "there is no translation into kernels"
"""The reason for an operator that has none."""


def no_dtype(dtype: str) -> str:
    """The reason for a call with a dtype that kernels do not support, or with a layout before it, such as `sparse_coo float32`."""
    return f"networks have no kernels of dtype {dtype}; use {'dense tensors' if ' ' in dtype else 'float32'}"


class StaysWhole(Unsupported):
    """This call must not be decomposed into parts either."""


class Ref(str):
    """The name of an array. A type of its own, because arguments may also be plain text."""


Result = str | list[str | None]
Translation = Callable[["AtenCall", "Builder"], Result]
TABLE: dict[str, Translation] = {}


def translates(*operators: str) -> Callable[[Translation], Translation]:
    """Registers a translation for ATen operators, spelled `aten.name.overload`."""

    def register(function: Translation) -> Translation:
        for operator in operators:
            assert operator not in TABLE, operator
            TABLE[operator] = function
        return function

    return register


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.float32` -> `float32`."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class AtenCall:
    """One call: arguments by their names in the operator's schema (arrays as `Ref`), the results' shapes and dtypes, and the numbers of the `used` results."""

    operator: str
    name: str
    arguments: Mapping[str, object]
    results: tuple[Value, ...]
    used: tuple[int, ...] = (0,)

    @property
    def result(self) -> Value:
        return self.results[0]

    def tensor(self, key: str) -> str:
        """The name of an argument that is an array."""
        value = self.arguments[key]
        if not isinstance(value, Ref):
            raise Unsupported(f"its argument {key} is {value!r}, not a tensor")
        return value

    def tensor_or_none(self, key: str) -> str | None:
        return None if self.arguments.get(key) is None else self.tensor(key)

    def tensors(self, key: str) -> list[str]:
        """The names of an argument that is a list of arrays."""
        value = self.arguments[key]
        assert isinstance(value, Sequence)
        return [str(one) for one in value]

    def ints(self, key: str, rank: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers; one integer stands for `rank` of them, and an empty or missing list for `default`."""
        value = self.arguments.get(key)
        if value is None or value == [] or value == ():
            if default is None:
                raise Unsupported(f"its argument {key} is missing")
            return tuple(default)
        if isinstance(value, int):
            return (value,) * rank
        assert isinstance(value, Sequence)
        return tuple(int(one) for one in value) * (rank if len(value) == 1 and rank > 1 else 1)

    def list(self, key: str) -> tuple[int, ...]:
        """A list of integers, as given."""
        value = self.arguments[key]
        return (value,) if isinstance(value, int) else self.ints(key, 1, ())

    def integer(self, key: str) -> int:
        value = self.arguments[key]
        if not isinstance(value, int):
            raise Unsupported(f"its argument {key} is {value!r}, not an integer")
        return value

    def number(self, key: str) -> float:
        value = self.arguments[key]
        if not isinstance(value, (int, float)):
            raise Unsupported(f"its argument {key} is {value!r}, not a number")
        return value

    def flag(self, key: str) -> bool:
        return bool(self.arguments.get(key))

    def required(self, reason: str, **expected: object) -> None:
        """Raises Unsupported unless these arguments, if given, have these values."""
        for key, value in expected.items():
            if self.arguments.get(key, value) != value:
                raise Unsupported(f"{reason} ({key}={self.arguments[key]!r})")


@dataclass(frozen=True, eq=False)
class Integers:
    """Signed bytes [out, ...] from which a float constant was dequantised: values * scales, [out] or [1]."""

    values: Array
    scales: NDArray[np.float32]


class Builder:
    """A graph under construction. Names are unique; shapes and dtypes are known as soon as a node is added."""

    def __init__(self) -> None:
        self.inputs: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: dict[str, Node] = {}
        self.values: dict[str, Value] = {}
        self.integers: dict[str, Integers] = {}  # float constant -> what it was dequantised from

    def input(self, name: str, value: Value) -> str:
        self.inputs[name] = self.values[name] = value
        return name

    def constant(self, hint: str, array: Array) -> str:
        name = unused(hint, self.values)
        self.constants[name] = array
        self.values[name] = Value(tuple(array.shape), str(array.dtype))
        return name

    def number(self, value: object, dtype: str) -> str:
        """A constant without dimensions."""
        if not isinstance(value, (int, float)):
            raise Unsupported(f"its argument {value!r} is not a number")
        try:
            return self.constant("number", np.full((), value, dtype))
        except OverflowError as error:  # PyTorch wraps such numbers around in some operators, and not in others
            raise Unsupported(f"its argument {value} is out of the range of {dtype}") from error

    def add(self, op: str, inputs: Sequence[str], shape: Sequence[int], dtype: str, hint: str = "", **attributes: Attribute) -> str:
        """Adds a node and returns its name."""
        name = unused(hint or op, self.values)
        self.nodes[name] = Node(name, op, tuple(map(str, inputs)), tuple(shape), dtype, attributes)
        self.values[name] = Value(tuple(shape), dtype)
        return name

    def state(self) -> tuple[dict[str, Array], dict[str, Node], dict[str, Value], dict[str, Integers]]:
        """What has been written so far, for `restore`."""
        return dict(self.constants), dict(self.nodes), dict(self.values), dict(self.integers)

    def restore(self, state: tuple[dict[str, Array], dict[str, Node], dict[str, Value], dict[str, Integers]]) -> None:
        """Discards what has been written since `state` was called."""
        self.constants, self.nodes, self.values, self.integers = state

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def dtype(self, name: str) -> str:
        return self.values[name].dtype

    def known(self, name: str) -> Array | None:
        """The value of a constant, None for anything else."""
        return self.constants.get(name)

    def required_constant(self, name: str) -> Array:
        """The value of a constant; Unsupported for anything else."""
        found = self.known(name)
        if found is None:
            raise Unsupported(f"its argument {name} is not a constant")
        return found

    def reshape(self, name: str, shape: Sequence[int], hint: str = "") -> str:
        """The same elements in another shape; the array itself if it already has that shape."""
        wanted = tuple(shape)
        assert prod(wanted) == self.values[name].size
        if self.shape(name) == wanted:
            return name
        node = self.nodes.get(name)
        source = node.inputs[0] if node is not None and node.op == "reshape" else name
        if self.shape(source) == wanted:
            return source
        array = self.known(source)
        if array is not None:
            return self.constant(f"{source}_reshaped", array.reshape(wanted))
        return self.add("reshape", [source], wanted, self.dtype(source), hint)

    def transpose(self, name: str, axes: Sequence[int], hint: str = "") -> str:
        """Dimension `i` of the result is dimension `axes[i]` of the array."""
        order = tuple(axes)
        if order == tuple(range(len(order))):
            return name
        shape = self.shape(name)
        array = self.known(name)
        if array is not None:
            return self.constant(f"{name}_transposed", array.transpose(order))  # a view: packing or copying it reads it in that order
        if moves_nothing(shape, order):
            return self.reshape(name, [shape[axis] for axis in order], hint)
        return self.add("transpose", [name], [shape[axis] for axis in order], self.dtype(name), hint, axes=order)

    def cast(self, name: str, dtype: str) -> str:
        """The array converted to `dtype`."""
        if self.dtype(name) == dtype:
            return name
        array = self.known(name)
        if array is not None:
            return self.constant(f"{name}_{dtype}", array.astype(dtype))
        return self.add("cast", [name], self.shape(name), dtype)

    def unary(self, op: str, name: str, hint: str = "", **attributes: Attribute) -> str:
        """An elementwise node of one operand."""
        return self.add(op, [name], self.shape(name), self.dtype(name), hint, **attributes)

    def binary(self, op: str, left: str, right: str | float, hint: str = "", dtype: str | None = None, reverse: bool = False) -> str:
        """An elementwise node of two operands of one dtype, broadcast. A number on the right becomes an attribute; `reverse` moves it to the left."""
        if not isinstance(right, str):
            return self.add(op, [left], self.shape(left), dtype or self.dtype(left), hint, scalar=right, scalar_first=reverse)
        shape = np.broadcast_shapes(self.shape(left), self.shape(right))
        return self.add(op, [left, right], shape, dtype or self.dtype(left), hint)

    def graph(self, outputs: Sequence[str]) -> Graph:
        return Graph(self.inputs, self.constants, tuple(self.nodes.values()), tuple(outputs)).pruned().checked()


def check_values(values: Sequence[Value]) -> None:
    """Raises Unsupported unless kernels support arrays like these."""
    for value in values:
        if value.dtype not in OF_KERNELS:
            raise Unsupported(no_dtype(value.dtype))
        if value.size == 0:
            raise Unsupported(f"kernels do not support arrays without elements (shape {value.shape})")


def is_of_kernels(value: Value) -> bool:
    """Whether kernels support such an array."""
    return value.dtype in OF_KERNELS and value.size > 0
