"""Runs a loop nest the slow, obvious way: every loop in order, one element at a time. Generated code is tested against this oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var
from ansor.ir.loops import Access, Buffer, Guard, IndexValue, Loops, Node, Store
from ansor.ir.numpy_operations import FUNCTIONS, OPERATIONS
from ansor.te.expr import Binary, Call, Cast, Const, Expr, Not, Select, is_float

Scalar = float | int | bool | np.generic
Memory = dict[Buffer, NDArray[np.generic]]
Values = dict[Var, int]
Operation = Callable[..., Scalar]

def run(loops: Loops, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    """Outputs by name, for inputs by name (in their declared shape; constants are packed here). Unwritten memory is NaN, 99, or True for bool."""
    memory: Memory = {}
    for buffer in loops.arguments:
        if buffer.scope == "output":
            memory[buffer] = _fresh(buffer)
        elif buffer.pack:
            memory[buffer] = pack_array(inputs[buffer.name], buffer)
        else:
            memory[buffer] = np.array(inputs[buffer.name], dtype=buffer.dtype)
    for buffer in loops.intermediates:
        memory[buffer] = _fresh(buffer)
    with np.errstate(all="ignore"):
        for node in loops.body:
            _run(node, memory, {})
    return {buffer.name: memory[buffer] for buffer in loops.arguments if buffer.scope == "output"}


def pack_array(array: NDArray[np.generic], buffer: Buffer) -> NDArray[np.generic]:
    """A constant in stored order, element by element; zero in the padding."""
    packed = np.zeros(tuple(int(extent) for extent in buffer.shape), dtype=array.dtype)
    for position in np.ndindex(*packed.shape):
        moved = (sum(int(s) * p for s, p in zip(strides, position, strict=True)) for strides in buffer.pack)
        index = tuple(int(start) + move for start, move in zip(buffer.starts, moved, strict=True))
        if all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
            packed[position] = array[index]
    return packed


def _fresh(buffer: Buffer) -> NDArray[np.generic]:
    fill = math.nan if is_float(buffer.dtype) else 1 if buffer.dtype == "bool" else 99
    return np.full(tuple(int(extent) for extent in buffer.shape), fill, dtype=buffer.dtype)


def _run(node: Node, memory: Memory, values: Values) -> None:
    if isinstance(node, Store):
        if all(_holds(guard, memory, values) for guard in node.guards):
            _store(node, memory, values)
        return
    for iteration in range(int(node.var.extent)):
        values[node.var] = iteration
        for buffer in node.locals:
            memory[buffer] = _fresh(buffer)
        for inner in node.body:
            _run(inner, memory, values)


def _holds(guard: Guard, memory: Memory, values: Values) -> bool:
    value = index_value(guard.value, memory, values)
    return (guard.low is None or value >= int(guard.low)) and (guard.high is None or value < int(guard.high))


def _store(store: Store, memory: Memory, values: Values) -> None:
    array = memory[store.buffer]
    index = tuple(index_value(i, memory, values) for i in store.index)
    if any(i < 0 or i >= n for i, n in zip(index, array.shape, strict=True)):
        raise IndexError(f"stage {store.stage} writes {store.buffer.name} of shape {array.shape} at {index}")
    value = evaluate(store.value, memory, values)
    if store.combiner is None:
        array[index] = value
        return
    kind = array.dtype.type
    old = kind(store.identity) if all(values[var] == 0 for var in store.reduce_vars) else array[index]
    array[index] = _COMBINED[store.combiner](old, kind(value))


_COMBINED: dict[str, Operation] = {"sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "max": np.maximum, "min": np.minimum}


def index_value(linear: Linear, memory: Memory, values: Values) -> int:
    """The value of an index."""
    total = int(linear.const)
    for atom, coefficient in linear.terms:
        if isinstance(atom, Var):
            value = values[atom]
        elif isinstance(atom, Quotient):
            value = index_value(atom.value, memory, values) // int(atom.divisor)
        elif isinstance(atom, Remainder):
            value = index_value(atom.value, memory, values) % int(atom.divisor)
        else:
            assert isinstance(atom, Opaque)
            value = int(evaluate(atom.value, memory, values))
        total += int(coefficient) * value
    return total


def evaluate(expr: Expr, memory: Memory, values: Values) -> Scalar:
    """The value of an expression, in its dtype."""
    if isinstance(expr, Const):
        return scalar(expr.value, expr.dtype)
    if isinstance(expr, IndexValue):
        return _cast(index_value(expr.value, memory, values), expr.dtype)
    if isinstance(expr, Access):
        array = memory[expr.buffer]
        index = tuple(index_value(i, memory, values) for i in expr.index)
        if any(i < 0 or i >= n for i, n in zip(index, array.shape, strict=True)):
            raise IndexError(f"reads {expr.buffer.name} of shape {array.shape} at {index}")
        stored: Scalar = array[index]
        return stored
    if isinstance(expr, Select):
        return evaluate(expr.then if evaluate(expr.condition, memory, values) else expr.otherwise, memory, values)
    if isinstance(expr, Not):
        return not evaluate(expr.value, memory, values)
    if isinstance(expr, Cast):
        return _cast(evaluate(expr.value, memory, values), expr.dtype)
    if isinstance(expr, Call):
        arguments = [np.asarray(evaluate(argument, memory, values), dtype=expr.dtype) for argument in expr.arguments]
        return scalar(element(FUNCTIONS[expr.name](*arguments)), expr.dtype)
    assert isinstance(expr, Binary)
    return _binary(expr, memory, values)


def _cast(value: Scalar, dtype: str) -> Scalar:
    if dtype != "bool" and not is_float(dtype):
        wrapped: Scalar = np.asarray([int(value)]).astype(dtype)[0]  # as C does
        return wrapped
    return scalar(value, dtype)


def element(array: Any) -> Scalar:  # NumPy gives arrays without dimensions, or their elements
    """The one element of an array without dimensions."""
    found: Scalar = array[()]
    return found


def scalar(value: Scalar, dtype: str) -> Scalar:
    """A NumPy scalar of `dtype`."""
    made: Scalar = np.dtype(dtype).type(value)
    return made


def _binary(expr: Binary, memory: Memory, values: Values) -> Scalar:
    a = evaluate(expr.left, memory, values)
    if expr.op == "and":
        return bool(a) and bool(evaluate(expr.right, memory, values))
    if expr.op == "or":
        return bool(a) or bool(evaluate(expr.right, memory, values))
    return element(OPERATIONS[expr.op](a, evaluate(expr.right, memory, values)))
