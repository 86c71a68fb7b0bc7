"""`tvm.topi.nn`'s convolutions. By default, those of channels-last data return float32, as TVM's do, and the others the dtype of the data."""

from __future__ import annotations

from ansor.te import nn
from ansor.te.nn.layout import Padding, Sizes
from ansor.te.tensor import Tensor


def conv1d(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, layout: str = "NCW", out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d`."""
    return nn.conv1d(data, kernel, strides, padding, dilation, 1, layout, "", out_dtype)


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d`."""
    return nn.conv1d(data, kernel, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d` of NWC data with a WIO kernel."""
    return nn.conv1d(data, kernel, strides, padding, dilation, 1, "NWC", "", out_dtype)


def group_conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, groups: int = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d` with groups."""
    return nn.conv1d(data, kernel, strides, padding, dilation, groups, "NCW", "", out_dtype)


def group_conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = "VALID", dilation: Sizes = 1, groups: int = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv1d` with groups, of NWC data with a WIO kernel."""
    return nn.conv1d(data, kernel, strides, padding, dilation, groups, "NWC", "", out_dtype)


def conv2d(
    input: Tensor, filter: Tensor, strides: Sizes, padding: Padding, dilation: Sizes, layout: str = "NCHW", out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv2d` with one group. Layouts: NCHW with an OIHW kernel, NHWC with HWIO, HWCN with HWIO."""
    kernel_layout = "HWIO" if layout == "HWCN" else ""
    return nn.conv2d(input, filter, strides, padding, dilation, 1, layout, kernel_layout, out_dtype or ("float32" if layout == "NHWC" else None))


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, out_dtype: str | None = None) -> Tensor:
    """`nn.conv2d` of NCHW data with an OIHW kernel."""
    return nn.conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype or Input.dtype)


def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.conv2d` of NHWC data with an HWIO kernel. The last two arguments are ignored: layouts are rewritten inside the program."""
    return nn.conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype or Input.dtype)


def conv2d_hwcn(Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, out_dtype: str | None = None) -> Tensor:
    """`nn.conv2d` of HWCN data with an HWIO kernel."""
    return nn.conv2d(Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype or Input.dtype)


def group_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv2d` with groups."""
    return nn.conv2d(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype or Input.dtype)


def group_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv2d` with groups, of NHWC data with an HWIO kernel."""
    return nn.conv2d(Input, Filter, stride, padding, dilation, groups, "NHWC", "", out_dtype or Input.dtype)


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, out_dtype: str | None = None) -> Tensor:
    """`nn.depthwise_conv2d_nchw`."""
    return nn.depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype or Input.dtype)


def depthwise_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, out_dtype: str | None = None) -> Tensor:
    """`nn.depthwise_conv2d_nhwc`."""
    return nn.depthwise_conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype or Input.dtype)


def conv3d_ncdhw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int = 1, out_dtype: str | None = None
) -> Tensor:  # fmt: skip
    """`nn.conv3d`."""
    return nn.conv3d(Input, Filter, stride, padding, dilation, groups, "NCDHW", "", out_dtype or Input.dtype)


def conv3d_ndhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Padding, dilation: Sizes, groups: int = 1, out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "", meta_schedule_origin_shape: object = None,
) -> Tensor:  # fmt: skip
    """`nn.conv3d` of NDHWC data with a DHWIO kernel. The last two arguments are ignored: layouts are rewritten inside the program."""
    return nn.conv3d(Input, Filter, stride, padding, dilation, groups, "NDHWC", "", out_dtype or Input.dtype)


def conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Padding, out_dtype: str | None = None, output_padding: Sizes = 0
) -> Tensor:  # fmt: skip
    """`nn.conv1d_transpose`."""
    return nn.conv1d_transpose(data, kernel, stride, padding, out_dtype, output_padding)


def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Sizes, padding: Padding, out_dtype: str | None = None, output_padding: Sizes = 0
) -> Tensor:  # fmt: skip
    """`nn.conv2d_transpose`."""
    return nn.conv2d_transpose(Input, Filter, strides, padding, out_dtype, output_padding)


def group_conv2d_transpose_nchw(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Padding, out_dtype: str | None, output_padding: Sizes, groups: int
) -> Tensor:  # fmt: skip
    """`nn.conv2d_transpose` with groups."""
    return nn.conv2d_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv3d_transpose_ncdhw(
    Input: Tensor, Filter: Tensor, strides: Sizes, padding: Padding, out_dtype: str | None = None, output_padding: Sizes = 0
) -> Tensor:  # fmt: skip
    """`nn.conv3d_transpose`."""
    return nn.conv3d_transpose(Input, Filter, strides, padding, out_dtype, output_padding)
