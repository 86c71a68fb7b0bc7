"""`tvm.topi`'s elementwise functions. Functions of floats convert integers and conditions to float32, as scalar expressions do."""

from __future__ import annotations

from typing import overload

from ansor.compat.tvm.topi.fallback import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.te import scalar
from ansor.te.expr import Expr, Number, as_expr
from ansor.te.expr import cast as cast_scalar
from ansor.te.tensor import Tensor, elementwise


def identity(x: Tensor) -> Tensor:
    """A copy."""
    return elementwise(x, lambda value: value, "identity")


def round(x: Tensor) -> Tensor:
    """The nearest integer; halves are rounded away from zero, like the C library's `round`."""
    return elementwise(x, scalar.round_half_away, "round")


def clip(x: Tensor, a_min: Number, a_max: Number) -> Tensor:
    """Every element limited to a_min..a_max. The bounds are converted to the dtype of x."""
    low, high = (cast_scalar(x.dtype, as_expr(bound)) for bound in (a_min, a_max))
    return elementwise(x, lambda value: scalar.max(scalar.min(value, high), low), "compute")


@overload
def cast(x: Tensor, dtype: str) -> Tensor: ...
@overload
def cast(x: Expr | Number, dtype: str) -> Expr: ...
def cast(x: Tensor | Expr | Number, dtype: str) -> Tensor | Expr:
    """Every element converted to `dtype`; to bool: whether it is not 0. A scalar expression gives a scalar expression."""
    return elementwise(x, lambda value: _converted(value, dtype), "T_cast") if isinstance(x, Tensor) else _converted(as_expr(x), dtype)


def _converted(value: Expr, dtype: str) -> Expr:
    return value != 0 if dtype == "bool" and value.dtype != "bool" else cast_scalar(dtype, value)
