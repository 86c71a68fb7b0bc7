"""`tvm.topi.nn`: our operators; where TVM's take their arguments in another order, functions that do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansor.compat.tvm.missing import of_topi
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.nn.layout import Padding, Sizes
from ansor.te.tensor import Tensor


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Operators whose arguments are as TVM's."""
    operator: Callable[..., Tensor] | None = getattr(nn, name, None)
    return operator if callable(operator) else of_topi(f"nn.{name}")


def conv2d(
    input: Tensor, filter: Tensor, strides: Sizes, padding: Padding, dilation: Sizes, data_layout: str = "NCHW", kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """`nn.conv2d` of one group."""
    return nn.conv2d(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def group_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv2d` of several groups."""
    return nn.conv2d(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype)


def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Sizes, padding: Padding, out_dtype: str | None = None, output_padding: Sizes = 0
) -> Tensor:  # fmt: skip
    """`nn.conv2d_transpose`."""
    return nn.conv2d_transpose(Input, Filter, strides, padding, out_dtype, output_padding)


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d`."""
    return nn.conv1d(data, kernel, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv3d_ncdhw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv3d`."""
    return nn.conv3d(Input, Filter, stride, padding, dilation, groups, "NCDHW", "", out_dtype)


def matmul(
    tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:  # fmt: skip
    """`nn.matmul`, and `bias` [columns] added to every row."""
    found = nn.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return found if bias is None else nn.bias_add(found, bias, -1)


def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Sequence[int] | None = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = True
) -> Tensor:  # fmt: skip
    """`nn.batch_matmul`. Raises DeclarationError for another `oshape` than the result has."""
    found = nn.batch_matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    if oshape is not None and tuple(oshape) != found.shape:
        raise DeclarationError(f"asked for a batch_matmul of shape {tuple(oshape)}, but its operands make {found.shape}; leave oshape out")
    return found


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: float = 0.0, name: str = "PadInput"
) -> Tensor:  # fmt: skip
    """`nn.pad`."""
    return nn.pad(data, pad_before, pad_after, pad_value, name)
