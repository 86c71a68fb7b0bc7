"""`tvm.topi.nn`'s pooling. As in TVM, but not in PyTorch and `nn`, `ceil_mode` includes windows that start after the data, in the padding."""

from __future__ import annotations

from ansor.compat.tvm.topi.fallback import of_nn as __getattr__  # noqa: F401  # our operators
from ansor.te import nn
from ansor.te.nn.layout import Padding, Sizes, paddings, sizes, spatial_of
from ansor.te.tensor import Tensor


def pool1d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Padding, pool_type: str, ceil_mode: bool = False, layout: str = "NCW",
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """`nn.pool1d`."""
    return nn.pool1d(data, kernel, stride, dilation, _sides(padding, stride, ceil_mode, layout), pool_type, False, layout, count_include_pad)


def pool2d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Padding, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """`nn.pool2d`."""
    return nn.pool2d(data, kernel, stride, dilation, _sides(padding, stride, ceil_mode, layout), pool_type, False, layout, count_include_pad)


def pool3d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Padding, pool_type: str, ceil_mode: bool = False, layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """`nn.pool3d`."""
    return nn.pool3d(data, kernel, stride, dilation, _sides(padding, stride, ceil_mode, layout), pool_type, False, layout, count_include_pad)


def pool_grad(
    grads: Tensor, data: Tensor, kernel: Sizes, stride: Sizes, padding: Padding, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """`nn.pool_grad`."""
    return nn.pool_grad(grads, data, kernel, stride, _sides(padding, stride, ceil_mode, layout), pool_type, False, layout, count_include_pad)


def adaptive_pool3d(data: Tensor, output_size: Sizes, pool_type: str, layout: str = "NCDHW") -> Tensor:
    """`nn.adaptive_pool`."""
    return nn.adaptive_pool(data, output_size, pool_type, layout)


def _sides(padding: Padding, stride: Sizes, ceil_mode: bool, layout: str) -> Padding:
    """The padding of each side. With `ceil_mode`, more is added at the end, so that the last window is complete."""
    if not ceil_mode:
        return padding
    count = len(spatial_of("pooling", "layout", layout))
    pairs = paddings("pooling", padding, (1,) * count)
    steps = sizes("pooling", "stride", stride, count)
    return [before for before, _ in pairs] + [after + step - 1 for (_, after), step in zip(pairs, steps, strict=True)]
