"""Checks that the ALU computes what an expression means. It computes int32 values, and OUT has their low 8 bits.

    int8((x * 3) + y)            accepted: the result wraps around in OUT, as in the declaration
    int8(x * 3) >> 1             refused: the ALU shifts x * 3, which has not wrapped around
    int8(min(x * 3, 127)) >> 1   refused: values below -128 wrap around, too; accepted with max(..., -128)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir.value_ranges import of_operation
from ansor.te.dtypes import INTEGER_LIMITS
from ansor.te.expr import COMPARISONS, LOGIC, SYMBOLS, Axis, Binary, Call, Cast, Const, Expr, Not, Select, is_float
from ansor.te.fold import postorder, walk
from ansor.te.interval import Interval

_HAS = "the ALU of a VTA core has +, -, *, min, max and shifts by numbers, of int32"
_ON_HOST = "do this on the host"
_OF_CHOICES = "write te.max(v, 0) for a ReLU and te.max(v, 0 - v) for te.abs(v), and choose otherwise on the host"
_OF_BORDERS = "a VTA core pads only what it reduces, while reading it"
_WORDS = {"div": "/", "floordiv": "//", "truncdiv": "a division that rounds towards 0", "floormod": "%", "truncmod": "a remainder", "pow": "a power"}


class AluError(ScheduleError):
    """The ALU has no such operation. why: what was asked for, what the ALU has, and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(f"asked for {why}")
        self.why = why


@dataclass(frozen=True)
class Value:
    """The range of an expression in the accumulators. wrapped: whether only the low 8 bits of its values are those of the declaration."""

    range: Interval
    wrapped: bool = False


def value_on_core(expr: Expr, leaf: Callable[[Expr], Value | None] = lambda node: None) -> Value:
    """The values of an expression. leaf: the values of a known node; None for others.

    Raises AluError for what the ALU cannot compute.
    """
    known: dict[int, Value] = {}
    for node in postorder(expr, lambda node: () if node.reads_memory or isinstance(node, Select) else node.children):
        given = leaf(node)
        known[id(node)] = given if given is not None else _of_node(node, known)
    return known[id(expr)]


def reduced(combiner: str, value: Value) -> Value:
    """The values of a reduction over values of a range. Raises AluError for reductions that a core does not have."""
    if combiner == "sum":
        return Value(INTEGER_LIMITS["int32"], value.wrapped)
    if combiner not in ("min", "max"):
        raise AluError(f"a reduction by {combiner}; a VTA core reduces by sum, min and max: {_ON_HOST}")
    if value.wrapped:
        raise AluError(_of_wrapped(combiner))
    return value


def either(value: Value, other: Value) -> Value:
    """A value that may be either of the two."""
    return Value((min(value.range[0], other.range[0]), max(value.range[1], other.range[1])), value.wrapped or other.wrapped)


def _of_node(node: Expr, known: dict[int, Value]) -> Value:
    if node.dtype not in ("int8", "int32"):
        _refuse_type(node)
    if node.reads_memory:
        return Value(INTEGER_LIMITS[node.dtype])
    if isinstance(node, Const):
        return Value((int(node.value), int(node.value)))
    if isinstance(node, Cast):
        return _within(node.dtype, known[id(node.value)])
    if isinstance(node, Binary):
        return _of_binary(node, known[id(node.left)], known[id(node.right)])
    raise AluError(_why_not(node))


def _refuse_type(node: Expr) -> None:
    if node.dtype == "bool":
        return  # conditions are refused together with their choice
    cure = "scale by a product and a shift of int32" if is_float(node.dtype) else "compute in int32"
    raise AluError(f"values of {node.dtype}; {_HAS}: {cure}, or {_ON_HOST}")


def _why_not(node: Expr) -> str:
    if isinstance(node, Axis):
        return f"the index {node.name} as a value; a VTA core computes from tensors: pass an int32 tensor with these numbers"
    if isinstance(node, Select):
        if not any(one.reads_memory for one in walk(node.condition)):
            return f"a border, or parts that are computed differently; {_OF_BORDERS}: {_ON_HOST}"
        return f"a choice between values; {_HAS}: {_OF_CHOICES}"
    what = node.name if isinstance(node, Call) else "a condition" if isinstance(node, Not) else str(node)
    return f"{what}; {_HAS}: {_ON_HOST}"


def _within(dtype: str, value: Value) -> Value:
    """A value converted to a dtype."""
    low, high = INTEGER_LIMITS[dtype]
    if low <= value.range[0] and value.range[1] <= high:
        return value
    return Value((low, high), value.wrapped or dtype == "int8")


def _of_binary(node: Binary, left: Value, right: Value) -> Value:
    op = _operation_of(node)
    exact = op in ("min", "max", "shr")
    if exact and (left.wrapped or right.wrapped):
        raise AluError(_of_wrapped(op))
    found = of_operation(node.op, left.range, right.range)
    return _within(node.dtype, Value(INTEGER_LIMITS["int32"] if found is None else found, left.wrapped or right.wrapped))


def _of_wrapped(op: str) -> str:
    cure = "compute in int32, or clip with te.max(te.min(v, 127), -128) before .astype('int8')"
    return f"{_sign(op)} of int8 values that may have wrapped around; a VTA core computes in int32, and only results wrap around: {cure}"


def _operation_of(node: Binary) -> str:
    """The operation that the ALU has for it."""
    op, number = node.op, int(node.right.value) if isinstance(node.right, Const) else None
    if op in ("add", "sub", "mul", "min", "max") or op in ("shl", "shr") and number is not None:
        return op
    if op == "floordiv" and number is not None and number > 0 and number & (number - 1) == 0:
        return "shr"
    if op in COMPARISONS or op in LOGIC:
        raise AluError(f"a comparison as a value; {_HAS}: {_ON_HOST}")
    if op in ("shl", "shr"):
        raise AluError(f"{_sign(op)} by a tensor or a result; {_HAS}: multiply by powers of two, or {_ON_HOST}")
    if op in ("floordiv", "truncdiv", "div"):
        by = "a tensor or a result" if number is None else str(number)
        raise AluError(f"{_sign(op)} by {by}; {_HAS}: divide by 2 ** n, or multiply and shift right: (v * 21845) >> 16 is about v // 3")
    raise AluError(f"{_sign(op)}; {_HAS}: {_ON_HOST}")


def _sign(op: str) -> str:
    return _WORDS.get(op, SYMBOLS.get(op, op))
