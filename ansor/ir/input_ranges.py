"""Which values integer inputs may take, so that computed indices stay in bounds and nothing is divided by zero."""

from __future__ import annotations

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.ir.value_ranges import of_operation
from ansor.te.expr import COMPARISONS, LOGIC, Axis, Binary, Cast, Const, Expr, Not, Reduce, Select, is_float
from ansor.te.fold import fold, walk
from ansor.te.interval import Interval
from ansor.te.tensor import Read, Tensor

Ranges = dict[str, Interval]  # both ends inclusive
DIVISORS: Interval = (1, 7)
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
DEFAULTS: dict[str, Interval] = {"bool": (0, 1), "uint8": (0, 15)}  # a superset of what inputs without a range hold
DEFAULT: Interval = (-8, 7)
GREATEST = {"int8": 127, "uint8": 255, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}


def input_ranges(dag: Dag) -> Ranges:
    """Least and greatest value of each integer input that decides an index or a divisor.

    The inputs of an index get the range 0..extent-1, halved until every value of the index is in bounds. If even zeros do not keep
    it in bounds (a condition may guard it), inputs read directly in the index are limited to the extent, and others are left alone.
    """
    ranges: Ranges = {}
    for stage in dag.stages:
        for node in walk(stage.compute.body) if stage.compute else ():
            if isinstance(node, Binary) and node.op in DIVISIONS:
                ranges.update(dict.fromkeys(_inputs(node.right), DIVISORS))
    for stage in dag.stages:
        for read in access.reads(stage):
            for index, extent in zip(read.indices, read.tensor.shape, strict=True):
                inputs = _inputs(index)
                if inputs:
                    ranges.update(_fitting(index, extent, inputs, ranges))
    return ranges


def _fitting(index: Expr, extent: int, inputs: dict[str, str], ranges: Ranges) -> Ranges:
    size = extent
    while size:
        found = {name: _narrowed(ranges.get(name), size, dtype) for name, dtype in inputs.items()}
        values = _values(index, {**ranges, **found}, {})
        if values is not None and values[0] >= 0 and values[1] < extent:
            return found
        size //= 2
    literal = {node.tensor.name for node in walk(index) if isinstance(node, Read)}
    return {name: _narrowed(ranges.get(name), extent, dtype) for name, dtype in inputs.items() if name in literal}


def _narrowed(known: Interval | None, size: int, dtype: str) -> Interval:
    low, high = known or (0, GREATEST[dtype])
    return low, max(low, min(high, size - 1, GREATEST[dtype]))


def _inputs(expr: Expr) -> dict[str, str]:
    """The integer inputs that an expression's value depends on, with their dtypes. An input that only selects an element does not count."""
    found: dict[str, str] = {}
    seen: set[str | int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        key = node.tensor.name if isinstance(node, Read) else id(node)
        if key in seen:
            continue
        seen.add(key)
        if not isinstance(node, Read):
            stack.extend(node.children)
        elif node.tensor.compute is not None:
            stack.append(node.tensor.compute.body)
        elif node.tensor.dtype in GREATEST:
            found[node.tensor.name] = node.tensor.dtype
    return found


def _values(expr: Expr, ranges: Ranges, stages: dict[str, Interval | None]) -> Interval | None:
    """Least and greatest value of an integer expression, a superset of the values really taken; None when unknown."""
    return fold(expr, lambda node, operands: _of_node(node, operands, ranges, stages))


def _of_node(expr: Expr, operands: tuple[Interval | None, ...], ranges: Ranges, stages: dict[str, Interval | None]) -> Interval | None:
    if is_float(expr.dtype):
        return None
    if isinstance(expr, Const):
        return int(expr.value), int(expr.value)
    if isinstance(expr, Axis):
        return expr.start, expr.start + expr.extent - 1
    if isinstance(expr, Not) or (isinstance(expr, Binary) and expr.op in (*COMPARISONS, *LOGIC)):
        return 0, 1
    if isinstance(expr, Cast):
        return operands[0]
    if isinstance(expr, Read):
        return _read(expr.tensor, ranges, stages)
    if isinstance(expr, Reduce):
        return _reduced(expr, operands[0])
    if isinstance(expr, Select):
        then, otherwise = operands[1:]
        return None if then is None or otherwise is None else (min(then[0], otherwise[0]), max(then[1], otherwise[1]))
    if not isinstance(expr, Binary):
        return None
    left, right = operands
    return None if left is None or right is None else of_operation(expr.op, left, right)


def _read(tensor: Tensor, ranges: Ranges, stages: dict[str, Interval | None]) -> Interval | None:
    if tensor.compute is None:
        return ranges.get(tensor.name) or (None if is_float(tensor.dtype) else DEFAULTS.get(tensor.dtype, DEFAULT))
    if tensor.name not in stages:
        stages[tensor.name] = _values(tensor.compute.body, ranges, stages)
    return stages[tensor.name]


def _reduced(expr: Reduce, values: Interval | None) -> Interval | None:
    if values is None or expr.combiner in ("max", "min"):
        return values
    length = 1
    for axis in expr.axes:
        length *= axis.extent
    return (values[0] * length, values[1] * length) if expr.combiner == "sum" else None
