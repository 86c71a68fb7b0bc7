"""Convolutions over 1, 2 and 3 spatial dimensions: stride, padding, dilation, groups, depthwise, any layout.

A convolution is two stages: `pad` (absent when nothing is padded) and the sum over taps. With groups the sum runs over the channels of one group;
a group of a single channel leaves no loop over channels at all, which is the depthwise convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr
from ansor.te.nn.layout import (
    Padding,
    Sizes,
    checked_layout,
    extents,
    in_layout,
    product,
    product_dtype,
    summed,
    tap_axis,
    tap_position,
    windows,
)
from ansor.te.nn.padding import pad_windows
from ansor.te.tensor import Tensor, declared


def conv1d(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, groups: int = 1, data_layout: str = "NCW",
           kernel_layout: str = "", out_dtype: str | None = None, name: str = "conv1d") -> Tensor:
    """Convolution over one spatial dimension, see `conv2d`. Layouts NCW with kernel OIW, NWC with kernel WIO."""
    return convolution("W", data, kernel, ConvOptions(strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype), name)


def conv2d(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, groups: int = 1, data_layout: str = "NCHW",
           kernel_layout: str = "", out_dtype: str | None = None, name: str = "conv2d") -> Tensor:
    """2-D convolution: data [N, C, H, W] with kernel [O, C // groups, KH, KW] (OIHW), or NHWC with HWIO.

    `padding`: an integer, (height, width), (top, left, bottom, right), "VALID" or "SAME". Depthwise: `groups` equal to C.
    `out_dtype`: both operands are converted to it before multiplying (int8 to int32, say); needed when their dtypes differ.
    """
    return convolution("HW", data, kernel, ConvOptions(strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype), name)


def conv3d(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, groups: int = 1, data_layout: str = "NCDHW",
           kernel_layout: str = "", out_dtype: str | None = None, name: str = "conv3d") -> Tensor:
    """Convolution over three spatial dimensions, see `conv2d`. Layouts NCDHW with kernel OIDHW, NDHWC with kernel DHWIO."""
    return convolution("DHW", data, kernel, ConvOptions(strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype), name)


@dataclass(frozen=True)
class ConvOptions:
    """How a kernel slides over data, and how both are stored: the arguments that all convolutions share. groups: 0 for a depthwise convolution."""

    strides: Sizes
    padding: Padding
    dilation: Sizes
    groups: int
    data_layout: str
    kernel_layout: str
    out_dtype: str | None


def convolution(spatial: str, data: Tensor, kernel: Tensor, how: ConvOptions, name: str) -> Tensor:
    """The convolution over the `spatial` letters, for the functions above."""
    data_layout, kernel_layout, groups = how.data_layout, how.kernel_layout, how.groups
    checked_layout(name, "data_layout", data_layout, "NC" + spatial, f"NC{spatial} or N{spatial}C")
    kernel_layout = kernel_layout or default_kernel_layout(data_layout, spatial)
    checked_layout(name, "kernel_layout", kernel_layout, "OI" + spatial, f"OI{spatial} or {spatial}IO")
    sizes, taps = extents(name, data, "data", data_layout), extents(name, kernel, "kernel", kernel_layout)
    _check_channels(name, data, kernel, sizes["C"], taps, groups)
    dtype = product_dtype(name, data, kernel, how.out_dtype)
    slides = windows(name, data, sizes, taps, how.strides, how.padding, how.dilation, spatial)
    padded = pad_windows(data, data_layout, slides)

    out = {"N": Axis("n", sizes["N"]), "C": Axis("co", taps["O"])} | {x: Axis(x.lower(), slides[x].output) for x in spatial}
    tap = {"C": tap_axis("rc", taps["I"])} | {x: tap_axis(f"r{x.lower()}", taps[x]) for x in spatial}
    places: dict[str, Expr] = {x: tap_position(out[x], tap[x], slides[x]) for x in spatial}
    places |= {"N": out["N"], "C": input_channel(out["C"], tap["C"], taps["O"] // groups, taps["I"], groups)}
    weights: dict[str, Expr] = {"O": out["C"], "I": tap["C"]}
    weights |= {x: tap[x] for x in spatial}
    body = product(padded[in_layout(data_layout, places)], kernel[in_layout(kernel_layout, weights)], dtype)
    order = [tap[letter] for letter in data_layout if letter != "N"]
    return declared(name, in_layout(data_layout, out), summed(body, order))


def conv2d_nchw(data: Tensor, kernel: Tensor, stride: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, out_dtype: str | None = None,
                name: str = "conv2d") -> Tensor:
    """`conv2d` of NCHW data with an OIHW kernel."""
    return convolution("HW", data, kernel, ConvOptions(stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype), name)


def conv2d_nhwc(data: Tensor, kernel: Tensor, stride: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, out_dtype: str | None = None,
                name: str = "conv2d") -> Tensor:
    """`conv2d` of NHWC data with an HWIO kernel."""
    return convolution("HW", data, kernel, ConvOptions(stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype), name)


def depthwise_conv2d_nchw(data: Tensor, kernel: Tensor, stride: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, out_dtype: str | None = None,
                          name: str = "depthwise_conv2d") -> Tensor:
    """Depthwise convolution of NCHW data; kernel [C, multiplier, KH, KW], output channel c * multiplier + m."""
    return _depthwise(data, kernel, ConvOptions(stride, padding, dilation, 0, "NCHW", "CMHW", out_dtype), name)


def depthwise_conv2d_nhwc(data: Tensor, kernel: Tensor, stride: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, out_dtype: str | None = None,
                          name: str = "depthwise_conv2d") -> Tensor:
    """Depthwise convolution of NHWC data; kernel [KH, KW, C, multiplier], output channel c * multiplier + m."""
    return _depthwise(data, kernel, ConvOptions(stride, padding, dilation, 0, "NHWC", "HWCM", out_dtype), name)


def _depthwise(data: Tensor, kernel: Tensor, how: ConvOptions, name: str) -> Tensor:
    data_layout, kernel_layout = how.data_layout, how.kernel_layout
    sizes, taps = extents(name, data, "data", data_layout), extents(name, kernel, "kernel", kernel_layout)
    if sizes["C"] != taps["C"]:
        raise DeclarationError(
            f"asked for {name} of {data.name} with {sizes['C']} channels and kernel {kernel.name} of shape {kernel.shape}, which has {taps['C']} in "
            f"dimension {kernel_layout.index('C')}; both have to be equal"
        )
    dtype = product_dtype(name, data, kernel, how.out_dtype)
    slides = windows(name, data, sizes, taps, how.strides, how.padding, how.dilation, "HW")
    padded = pad_windows(data, data_layout, slides)
    out = {"N": Axis("n", sizes["N"]), "C": Axis("co", sizes["C"] * taps["M"])} | {x: Axis(x.lower(), slides[x].output) for x in "HW"}
    tap = {x: tap_axis(f"r{x.lower()}", taps[x]) for x in "HW"}
    channel, multiple = out["C"] // taps["M"], out["C"] % taps["M"]
    places: dict[str, Expr] = {"N": out["N"], "C": channel} | {x: tap_position(out[x], tap[x], slides[x]) for x in "HW"}
    weights: dict[str, Expr] = {"C": channel, "M": multiple, "H": tap["H"], "W": tap["W"]}
    body = product(padded[in_layout(data_layout, places)], kernel[in_layout(kernel_layout, weights)], dtype)
    return declared(name, in_layout(data_layout, out), summed(body, [tap["H"], tap["W"]]))


def default_kernel_layout(data_layout: str, spatial: str) -> str:
    """OIHW for channels first; HWIO for channels last, which keeps the output channel innermost in kernel and output."""
    return spatial + "IO" if data_layout.endswith("C") else "OI" + spatial


def input_channel(out: Expr, tap: Expr, outputs: int, inputs: int, groups: int) -> Expr:
    """The input channel of tap `tap` (of `inputs` per group) for output channel `out` (of `outputs` per group)."""
    return tap if groups == 1 else out // outputs * inputs + tap


def _check_channels(name: str, data: Tensor, kernel: Tensor, channels: int, taps: dict[str, int], groups: int) -> None:
    if groups < 1 or channels % groups or taps["O"] % groups:
        raise DeclarationError(
            f"asked for {name} of {data.name} with groups={groups}, {channels} input channels and {taps['O']} output channels; "
            "groups has to divide both"
        )
    if channels != taps["I"] * groups:
        raise DeclarationError(
            f"asked for {name} of {data.name} with {channels} channels in {groups} {'group' if groups == 1 else 'groups'} and kernel {kernel.name} of "
            f"shape {kernel.shape}, which takes {taps['I']} input channels per group; it has to take {channels // groups}: "
            "check the layouts and groups="
        )
