"""Operators of `tvm.topi.nn` that do more than ours of the same name."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.nn.layout import Padding, Sizes
from ansor.te.tensor import Tensor


def conv2d(
    input: Tensor, filter: Tensor, strides: Sizes, padding: Padding, dilation: Sizes, layout: str = "NCHW", out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv2d` with one group. Layouts: NCHW with an OIHW kernel, NHWC with HWIO, HWCN with HWIO."""
    kernel_layout = "HWIO" if layout == "HWCN" else ""
    return nn.conv2d(input, filter, strides, padding, dilation, 1, layout, kernel_layout, out_dtype or ("float32" if layout == "NHWC" else None))


def matmul(
    tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.matmul`, with `bias` [columns] added to every row. The last two arguments are ignored: layouts are rewritten inside the program."""
    found = nn.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype or tensor_a.dtype)
    return found if bias is None else nn.bias_add(found, bias, -1)


def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Sequence[int] | None = None, out_dtype: str | None = None, transpose_a: bool = False,
    transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.batch_matmul`. The last two arguments are ignored. Raises DeclarationError if `oshape` is not the result's shape."""
    found = nn.batch_matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype or tensor_a.dtype)
    if oshape is not None and tuple(oshape) != found.shape:
        raise DeclarationError(f"asked for a batch_matmul of shape {tuple(oshape)}, but its operands give {found.shape}; omit oshape")
    return found


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
