"""`tvm.topi.tensor`, and what TVM has beside it: constants, running sums, `einsum`."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.te import nn
from ansor.te.expr import Expr, Number
from ansor.te.tensor import Tensor


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """`nn.elementwise_sum`."""
    return nn.elementwise_sum(xs)


def full(shape: Sequence[int], dtype: str, fill_value: Number | Expr) -> Tensor:
    """`nn.full`."""
    return nn.full(shape, dtype, fill_value)


def full_like(x: Tensor, fill_value: Number | Expr) -> Tensor:
    """`nn.full_like`."""
    return nn.full_like(x, fill_value)


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """`nn.cumsum`."""
    return nn.cumsum(data, axis, dtype, bool(exclusive))


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """`nn.cumprod`."""
    return nn.cumprod(data, axis, dtype, bool(exclusive))


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """`nn.einsum`."""
    return nn.einsum(subscripts, *operand)
