"""`tvm.topi.transform`: operators that move elements, and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.tvm.topi.fallback import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.tensor import Tensor


def strided_slice(
    a: Tensor, begin: Sequence[int | None], end: Sequence[int | None], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:  # fmt: skip
    """`nn.strided_slice`. Missing strides at the end are 1. With slice_mode "size", `end` holds extents; -1 means up to the end.

    Raises DeclarationError for tensors as bounds: the shape of the result would depend on their values.
    """
    if any(isinstance(bounds, Tensor) for bounds in (begin, end, strides)):
        raise DeclarationError(f"asked for strided_slice of {a.name} with tensors as bounds, but a shape cannot depend on their values; give Python integers")
    steps = [*(strides or ()), *[1] * (len(begin) - len(strides or ()))]
    if slice_mode == "size":
        end = [None if size is None or size < 0 else (first or 0) + size for first, size in zip(begin, end, strict=True)]
        steps = [1] * len(begin)
    elif slice_mode != "end":
        raise DeclarationError(f"asked for strided_slice of {a.name} with slice_mode {slice_mode!r}; it is 'end' or 'size'")
    return nn.strided_slice(a, begin, end, steps, axes)


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """`nn.take`. Mode "fast", in which TVM does not check indices, is "clip" here. Raises DeclarationError if `batch_dims` is given."""
    if batch_dims:
        raise DeclarationError(f"asked for take of {a.name} with batch_dims={batch_dims}; use topi.gather, or te.compute")
    return nn.take(a, indices, axis, "clip" if mode == "fast" else mode)


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """`nn.matmul`."""
    return nn.matmul(a, b, transp_a, transp_b)
