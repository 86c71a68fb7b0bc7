"""`tvm.topi.nn`'s operators other than convolutions and pooling, as far as their arguments differ from ours."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.tvm.topi.fallback import of_nn as __getattr__  # noqa: F401  # our operators
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.expr import Number
from ansor.te.tensor import Tensor


def flatten(data: Tensor) -> Tensor:
    """`nn.flatten`: merges all dimensions but the first."""
    return nn.flatten(data)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.dense`. The last two arguments are ignored: layouts are rewritten inside the program."""
    return nn.dense(data, weight, bias, out_dtype or data.dtype)


def matmul(
    tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.matmul`, plus `bias` [columns] on every row. The last two arguments are ignored."""
    found = nn.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype or tensor_a.dtype)
    return found if bias is None else nn.bias_add(found, bias, -1)


def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Sequence[int] | None = None, out_dtype: str | None = None, transpose_a: bool = False,
    transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.batch_matmul`. The last two arguments are ignored. Raises DeclarationError if `oshape` is not the result's shape."""
    found = nn.batch_matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype or tensor_a.dtype)
    if oshape is not None and tuple(oshape) != found.shape:
        raise DeclarationError(f"asked for a batch_matmul of shape {tuple(oshape)}, but its operands give {found.shape}; leave out oshape")
    return found


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: float = 0.0, name: str = "PadInput", attrs: object = None
) -> Tensor:  # fmt: skip
    """`nn.pad`. `attrs` are ignored."""
    return nn.pad(data, pad_before, pad_after, pad_value, name)


def dilate(data: Tensor, strides: Sequence[int], dilation_value: Number = 0.0, name: str = "DilatedInput") -> Tensor:
    """`nn.dilate`."""
    return nn.dilate(data, strides, dilation_value, name)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """`nn.scale_shift` along the second dimension."""
    return nn.scale_shift(Input, Scale, Shift, 1)


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """`nn.scale_shift` along the last dimension."""
    return nn.scale_shift(Input, Scale, Shift, -1)


def batch_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int | None = None, epsilon: float | None = None,
    center: bool | None = None, scale: bool | None = None,
) -> list[Tensor]:  # fmt: skip
    """`nn.batch_norm`, followed by the two statistics, unchanged. center=False ignores `beta`, scale=False ignores `gamma`; the default dimension is 1."""
    found = nn.batch_norm(
        data, None if scale is False else gamma, None if center is False else beta, moving_mean, moving_var, 1 if axis is None else axis,
        1e-5 if epsilon is None else epsilon,
    )  # fmt: skip
    return [found, moving_mean, moving_var]
