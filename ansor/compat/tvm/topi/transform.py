"""Operators of `tvm.topi` that do more than ours of the same name. `operators` provides all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ansor.compat.tvm.topi.operators import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.errors import DeclarationError
from ansor.te import nn, scalar
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


def strided_slice(
    a: Tensor, begin: Sequence[int | None], end: Sequence[int | None], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:  # fmt: skip
    """`nn.strided_slice`. Missing strides at the end are 1. With slice_mode "size", `end` holds extents, -1 means up to the end, and strides are ignored.

    Raises DeclarationError for tensors as bounds: the shape of the result would depend on their values.
    """
    if any(isinstance(bounds, Tensor) for bounds in (begin, end, strides)):
        raise DeclarationError(f"asked for strided_slice of {a.name} with tensors as bounds, but a shape cannot depend on their values; give Python integers")
    steps = [*(strides or ()), *[1] * (len(begin) - len(strides or ()))]
    if slice_mode == "size":
        end = [None if size is None or size < 0 else (first or 0) + size for first, size in zip(begin, end, strict=True)]
        steps = [1] * len(begin)
    elif slice_mode != "end":
        raise DeclarationError(f"asked for strided_slice of {a.name} with slice_mode {slice_mode!r}; give 'end' or 'size'")
    return nn.strided_slice(a, begin, end, steps, axes)


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """`nn.take`. Mode "fast", which skips checks of indices in TVM, is "clip" here. Raises DeclarationError if `batch_dims` is given."""
    if batch_dims:
        raise DeclarationError(f"asked for take of {a.name} with batch_dims={batch_dims}; use topi.gather, or te.compute")
    return nn.take(a, indices, axis, "clip" if mode == "fast" else mode)
