"""The same declaration in double precision: the reference that results are verified against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansor.te.expr import Binary, Call, Cast, Const, Expr, Reduce, Select, is_float
from ansor.te.fold import fold
from ansor.te.tensor import Compute, Read, Tensor


def in_double(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors with bfloat16, float16 and float32 replaced by float64 in every tensor, constant and operation behind them.

    Constants keep the value they have in their dtype, and axes stay the same objects, so the result is the exact meaning of the
    declaration. Names, order and all other dtypes are unchanged.
    """
    known: dict[int, Tensor] = {}
    return [_tensor(tensor, known) for tensor in tensors]


def _tensor(tensor: Tensor, known: dict[int, Tensor]) -> Tensor:
    if id(tensor) not in known:
        compute = tensor.compute
        if compute is not None:
            compute = Compute(compute.axes, compute.reduce_axes, fold(compute.body, lambda expr, children: _rebuilt(expr, children, known)))
        known[id(tensor)] = Tensor(tensor.name, tensor.shape, _dtype(tensor.dtype), compute, tensor.constant, tensor.tag, tensor.attrs)
    return known[id(tensor)]


def _rebuilt(expr: Expr, children: tuple[Expr, ...], known: dict[int, Tensor]) -> Expr:
    dtype = _dtype(expr.dtype)
    if isinstance(expr, Const):
        return Const(_rounded(float(expr.value), expr.dtype), dtype) if dtype != expr.dtype else expr
    if isinstance(expr, Read):
        return Read(_tensor(expr.tensor, known), children, dtype)
    if isinstance(expr, Binary):
        return Binary(expr.op, children[0], children[1], dtype)
    if isinstance(expr, Call):
        return Call(expr.name, children, dtype)
    if isinstance(expr, Select):
        return Select(children[0], children[1], children[2], dtype)
    if isinstance(expr, Reduce):
        return Reduce(expr.combiner, children[0], expr.axes, dtype)
    if isinstance(expr, Cast):
        return children[0] if children[0].dtype == dtype else Cast(children[0], dtype)
    return expr.rebuilt(children) if children else expr


def _dtype(dtype: str) -> str:
    return "float64" if is_float(dtype) else dtype


def _rounded(value: float, dtype: str) -> float:
    with np.errstate(over="ignore"):  # values beyond the dtype's range become infinite
        return float(np.dtype(dtype).type(value))
