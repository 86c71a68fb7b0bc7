"""`tvm.topi.tensor` and related functions: constants, cumulative sums, `einsum`."""

from __future__ import annotations

from ansor.compat.tvm.topi.fallback import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.te import nn
from ansor.te.tensor import Tensor


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """`nn.cumsum`."""
    return nn.cumsum(data, axis, dtype, bool(exclusive))


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """`nn.cumprod`."""
    return nn.cumprod(data, axis, dtype, bool(exclusive))
