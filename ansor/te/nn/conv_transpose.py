"""Transposed convolution (deconvolution).

The classic method inserts stride - 1 zeros between the data's elements and convolves, so that most multiplications are by zero. Here every phase is
computed separately instead. At place y of the uncropped result, kernel tap k = y % stride + stride * t meets only data place y // stride - t. With output
place o = stride * q + p (p is the phase) and y = o + crop:

    pad        the data, by the taps that reach past its ends
    phases     [.., q, p, ..] = sum over t and channels of data[q + crossed(p) - t] * kernel[rest(p) + stride * t]
    the output [.., o, ..] = phases[o // stride, o % stride]

crossed(p) = (p + crop) // stride and rest(p) = (p + crop) % stride are plain sums for stride 2, and for any stride that divides the crop. If the stride
does not divide the kernel's extent, zeros are first appended to the kernel (stage `kernel_pad`). If the weights are known ahead of time, avoid that stage
by appending e zeros to the kernel and adding e to the padding after the data's end. With stride 1, the single phase is the output.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr
from ansor.te.nn.conv import ConvOptions, input_channel
from ansor.te.nn.layout import Padding, Sizes, checked_layout, extents, in_layout, paddings, product, product_dtype, sizes, summed, tap_axis
from ansor.te.nn.padding import pad
from ansor.te.tensor import Tensor, declared


def conv1d_transpose(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, out_dtype: str | None = None, output_padding: Sizes = 0,
                     groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "", name: str = "conv1d_transpose") -> Tensor:
    """Transposed convolution over one spatial dimension, see `conv2d_transpose`. Layouts NCW with kernel IOW, NWC with kernel WIO."""
    return transposed("W", data, kernel, ConvOptions(strides, padding, 1, groups, data_layout, kernel_layout, out_dtype), output_padding, name)


def conv2d_transpose(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, out_dtype: str | None = None, output_padding: Sizes = 0,
                     groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "", name: str = "conv2d_transpose") -> Tensor:
    """2-D transposed convolution: data [N, C, H, W], kernel [C, O // groups, KH, KW] (IOHW), or NHWC with HWIO.

    Output height: (H - 1) * stride - top - bottom + KH + output_padding, as PyTorch's.
    """
    return transposed("HW", data, kernel, ConvOptions(strides, padding, 1, groups, data_layout, kernel_layout, out_dtype), output_padding, name)


def conv3d_transpose(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, out_dtype: str | None = None, output_padding: Sizes = 0,
                     groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "", name: str = "conv3d_transpose") -> Tensor:
    """Transposed convolution over three spatial dimensions, see `conv2d_transpose`. Layouts NCDHW with kernel IODHW, NDHWC with kernel DHWIO."""
    return transposed("DHW", data, kernel, ConvOptions(strides, padding, 1, groups, data_layout, kernel_layout, out_dtype), output_padding, name)


@dataclass(frozen=True, slots=True)
class _Phases:
    """One spatial dimension: the first `crop` elements of the full result are cut off."""

    size: int
    kernel: int
    stride: int
    crop: int
    output: int

    @property
    def taps(self) -> int:
        """Taps of one phase."""
        return -(-self.kernel // self.stride)

    @property
    def kernel_tail(self) -> int:
        """Zeros to append to the kernel."""
        return self.taps * self.stride - self.kernel

    @property
    def count(self) -> int:
        """Number of values of q."""
        return -(-self.output // self.stride)

    @property
    def oldest(self) -> int:
        """Data place of the first tap of the first output place."""
        return self.crop // self.stride - (self.taps - 1)

    @property
    def before(self) -> int:
        """Zeros before the data."""
        return max(0, -self.oldest)

    @property
    def after(self) -> int:
        """Zeros after the data."""
        last = self.count - 1 + (self.stride - 1 + self.crop) // self.stride
        return max(0, last - (self.size - 1))

    def place(self, q: Expr, phase: Expr | None, tap: Expr) -> Expr:
        """Where a tap reads the padded data; places ascend with the tap."""
        return q + self._crossed(phase) + tap + (self.oldest + self.before)

    def weight(self, phase: Expr | None, tap: Expr) -> Expr:
        """Where a tap reads the kernel."""
        rest = 0 if phase is None else phase + self.crop % self.stride - self._crossed(phase) * self.stride
        return (self.taps - 1 - tap) * self.stride + rest

    def _crossed(self, phase: Expr | None) -> Expr:
        """How many strides the crop moves a phase ahead: 0 or 1."""
        crop = self.crop % self.stride
        if phase is None or crop == 0:
            return Const(0, "int32")
        return phase if self.stride == 2 else (phase + crop) // self.stride


def transposed(spatial: str, data: Tensor, kernel: Tensor, how: ConvOptions, output_padding: Sizes, name: str) -> Tensor:
    """The transposed convolution over the `spatial` letters, for the functions above."""
    data_layout, kernel_layout, groups = how.data_layout, how.kernel_layout, how.groups
    checked_layout(name, "data_layout", data_layout, "NC" + spatial, f"NC{spatial} or N{spatial}C")
    kernel_layout = kernel_layout or (spatial + "IO" if data_layout.endswith("C") else "IO" + spatial)
    checked_layout(name, "kernel_layout", kernel_layout, "IO" + spatial, f"IO{spatial} or {spatial}IO")
    given, taps = extents(name, data, "data", data_layout), extents(name, kernel, "kernel", kernel_layout)
    _check_channels(name, data, kernel, given["C"], taps["I"], groups)
    dtype = product_dtype(name, data, kernel, how.out_dtype)
    dims = _phases(name, data, spatial, given, taps, how.strides, how.padding, output_padding)
    padded = _extended(data, data_layout, {x: (dim.before, dim.after) for x, dim in dims.items()}, "pad")
    weights = _extended(kernel, kernel_layout, {x: (0, dim.kernel_tail) for x, dim in dims.items()}, "kernel_pad")

    many = [x for x in spatial if dims[x].stride > 1]
    channels = Axis("co", taps["O"] * groups)
    outer = {"N": Axis("n", given["N"]), "C": channels} | {x: Axis(f"q{x.lower()}" if x in many else x.lower(), dims[x].count) for x in spatial}
    phase = {x: Axis(f"p{x.lower()}", dims[x].stride) for x in many}
    tap = {"C": tap_axis("rc", given["C"] // groups)} | {x: tap_axis(f"r{x.lower()}", dims[x].taps) for x in spatial}
    places: dict[str, Expr] = {x: dims[x].place(outer[x], phase.get(x), tap[x]) for x in spatial}
    places |= {"N": outer["N"], "C": input_channel(channels, tap["C"], taps["O"], given["C"] // groups, groups)}
    chosen: dict[str, Expr] = {x: dims[x].weight(phase.get(x), tap[x]) for x in spatial}
    chosen |= {"I": places["C"], "O": channels if groups == 1 else channels % taps["O"]}
    body = product(padded[in_layout(data_layout, places)], weights[in_layout(kernel_layout, chosen)], dtype)
    total = summed(body, [tap[letter] for letter in data_layout if letter != "N"])
    if not many:
        return declared(name, in_layout(data_layout, outer), total)
    axes = _phase_order(data_layout, outer, phase)
    return _interleaved(declared(f"{name}_phases", axes, total), axes, data_layout, outer, phase, dims, name)


def _phase_order(layout: str, outer: dict[str, Axis], phase: dict[str, Axis]) -> tuple[Axis, ...]:
    """The order of the axes. Channels last: each phase next to its place, as in the output. Channels first: phases outside, to keep the last q contiguous."""
    if not layout.endswith("C"):
        return (outer[layout[0]], *phase.values(), *(outer[letter] for letter in layout[1:]))
    return tuple(axis for letter in layout for axis in ((outer[letter], phase[letter]) if letter in phase else (outer[letter],)))


def _interleaved(phases: Tensor, axes: tuple[Axis, ...], layout: str, outer: dict[str, Axis], phase: dict[str, Axis], dims: dict[str, _Phases],
                 name: str) -> Tensor:
    out = {letter: Axis(outer[letter].name, outer[letter].extent) for letter in layout if letter not in phase}
    out |= {x: Axis(x.lower(), dims[x].output) for x in phase}
    index: dict[str, Expr] = {outer[letter].name: axis for letter, axis in out.items() if letter not in phase}
    for x in phase:
        index |= {outer[x].name: out[x] // dims[x].stride, phase[x].name: out[x] % dims[x].stride}
    return declared(name, in_layout(layout, out), phases[tuple(index[axis.name] for axis in axes)])


def _extended(tensor: Tensor, layout: str, amounts: dict[str, tuple[int, int]], name: str) -> Tensor:
    if not any(before or after for before, after in amounts.values()):
        return tensor
    return pad(tensor, [amounts.get(x, (0, 0))[0] for x in layout], [amounts.get(x, (0, 0))[1] for x in layout], name=name)


def _phases(name: str, data: Tensor, spatial: str, given: dict[str, int], taps: dict[str, int], strides: Sizes, padding: Padding,
            output_padding: Sizes) -> dict[str, _Phases]:
    steps = sizes(name, "strides", strides, len(spatial))
    extra = sizes(name, "output_padding", output_padding, len(spatial), least=0)
    pads = paddings(name, padding, [taps[x] for x in spatial])
    result = {}
    for x, stride, more, (before, after) in zip(spatial, steps, extra, pads, strict=True):
        if more >= stride:
            raise DeclarationError(f"asked for {name} with output_padding {more} in dimension {x}, where the stride is {stride}; it has to be less")
        output = (given[x] - 1) * stride - before - after + taps[x] + more
        if output < 1:
            raise DeclarationError(
                f"asked for {name} of {data.name} with extent {given[x]} in dimension {x}, kernel {taps[x]}, stride {stride} and padding {before} + {after}, "
                f"which leaves {output} elements; pad less"
            )
        result[x] = _Phases(given[x], taps[x], stride, before, output)
    return result


def _check_channels(name: str, data: Tensor, kernel: Tensor, channels: int, inputs: int, groups: int) -> None:
    if channels != inputs:
        raise DeclarationError(
            f"asked for {name} of {data.name} with {channels} channels and kernel {kernel.name} of shape {kernel.shape}, which takes {inputs}; "
            "both have to be equal: check the layouts"
        )
    if groups < 1 or channels % groups:
        raise DeclarationError(f"asked for {name} of {data.name} with groups={groups} and {channels} channels; groups has to divide the channels")
