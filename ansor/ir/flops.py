"""How many arithmetic operations a declaration asks for (reference section 1.1)."""

from __future__ import annotations

from ansor.ir.access import reduce_length, value_of
from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Not, Read, Reduce, Select
from ansor.te.tensor import Tensor


def flops(tensor: Tensor) -> int:
    """Operations for the whole tensor; index arithmetic and the tests of a padding are free. The attribute FLOP overrides."""
    if tensor.compute is None:
        return 0
    override = tensor.attrs.get("FLOP")
    if isinstance(override, int):
        return override
    per_element = _operations(value_of(tensor), tensor.dtype)
    if isinstance(tensor.compute.body, Reduce):
        return tensor.size * reduce_length(tensor) * (per_element + 1)
    return tensor.size * per_element


def _code(dtype: str) -> str:
    return dtype.rstrip("0123456789")


def _operations(expr: Expr, dtype: str) -> int:
    if isinstance(expr, Const | Axis | Read):
        return 0
    if isinstance(expr, Cast):
        return _operations(expr.value, dtype)
    if isinstance(expr, Not):
        return _operations(expr.value, dtype)
    if isinstance(expr, Select):
        return _operations(expr.condition, dtype) + max(_operations(expr.then, dtype), _operations(expr.otherwise, dtype))
    if isinstance(expr, Call):
        return sum(_operations(argument, dtype) for argument in expr.arguments)
    assert isinstance(expr, Binary)
    counted = int(_code(expr.left.dtype) == _code(dtype) or _code(expr.right.dtype) == _code(dtype))
    return counted + _operations(expr.left, dtype) + _operations(expr.right, dtype)
