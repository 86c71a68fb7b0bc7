"""Operators that move elements between space and channels, and that enlarge images: nearest neighbour, bilinear interpolation, zeros in between."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Expr, Number, as_expr, cast, computed
from ansor.te.nn.layout import checked_layout, extents, in_layout
from ansor.te.scalar import all as all_of
from ansor.te.scalar import floor, if_then_else
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, axes_of, declared


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR", name: str = "depth_to_space") -> Tensor:
    """Turn channels into blocks of block_size x block_size elements. Mode "DCR": the place in the block is the outer part of the channel; "CRD": the inner."""
    given = extents(name, data, "data", checked_layout(name, "layout", layout, "NCHW", "NCHW or NHWC"))
    if mode not in ("DCR", "CRD") or block_size < 1 or given["C"] % block_size**2:
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} by {block_size}, mode {mode!r}; the mode is 'DCR' or 'CRD', and "
                               f"the {given['C']} channels have to be a multiple of {block_size**2}")
    channels = given["C"] // block_size**2
    out = given | {"C": channels, "H": given["H"] * block_size, "W": given["W"] * block_size}
    axes = axes_of(in_layout(layout, out))
    at = dict(zip(layout, axes, strict=True))
    inner = at["H"] % block_size * block_size + at["W"] % block_size
    channel = inner * channels + at["C"] if mode == "DCR" else at["C"] * block_size**2 + inner
    return declared(name, axes, data[in_layout(layout, {"N": at["N"], "C": channel, "H": at["H"] // block_size, "W": at["W"] // block_size})])


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW", name: str = "space_to_depth") -> Tensor:
    """Turn blocks of block_size x block_size elements into channels; the place in the block becomes the outer part of the channel."""
    given = extents(name, data, "data", checked_layout(name, "layout", layout, "NCHW", "NCHW or NHWC"))
    if block_size < 1 or given["H"] % block_size or given["W"] % block_size:
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} by {block_size}; height and width have to be multiples of it")
    out = given | {"C": given["C"] * block_size**2, "H": given["H"] // block_size, "W": given["W"] // block_size}
    axes = axes_of(in_layout(layout, out))
    at = dict(zip(layout, axes, strict=True))
    inner = at["C"] // given["C"]
    places: dict[str, Expr] = {"N": at["N"], "C": at["C"] % given["C"], "H": at["H"] * block_size + inner // block_size,
                               "W": at["W"] * block_size + inner % block_size}
    return declared(name, axes, data[in_layout(layout, places)])


def dilate(data: Tensor, strides: Sequence[int], dilation_value: Number = 0.0, name: str = "dilate") -> Tensor:
    """`data` with strides[d] - 1 elements of `dilation_value` inserted between neighbours, in each dimension d."""
    if len(strides) != data.ndim or any(stride < 1 for stride in strides):
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} by {tuple(strides)}; give {data.ndim} integers of at least 1")
    axes = axes_of(tuple((extent - 1) * stride + 1 for extent, stride in zip(data.shape, strides, strict=True)))
    kept = [axis % stride == 0 for axis, stride in zip(axes, strides, strict=True) if stride > 1 and axis.extent > 1]
    value = data[tuple(axis // stride for axis, stride in zip(axes, strides, strict=True))]
    other = as_expr(dilation_value if value.dtype.startswith("float") else int(dilation_value), value.dtype)
    return declared(name, axes, if_then_else(all_of(*kept), value, other) if kept else value)


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False,
               name: str = "upsampling") -> Tensor:
    """Images enlarged by the two factors, with the nearest element ("nearest_neighbor") or interpolation between four ("bilinear").

    Bilinear interpolation aligns pixel centres, or with align_corners the corner pixels of both images.
    """
    given = extents(name, data, "data", checked_layout(name, "layout", layout, "NCHW", "NCHW or NHWC"))
    if method not in ("nearest_neighbor", "bilinear"):
        raise DeclarationError(f"asked for {name} of {data.name} with method {method!r}; it is 'nearest_neighbor' or 'bilinear'")
    sizes = {"H": round(given["H"] * scale_h), "W": round(given["W"] * scale_w)}
    axes = axes_of(in_layout(layout, given | sizes))
    at: dict[str, Expr] = dict(zip(layout, axes, strict=True))
    if method == "nearest_neighbor":
        near = {x: lesser(at[x] * given[x] // sizes[x], given[x] - 1) for x in "HW"}
        return declared(name, axes, data[in_layout(layout, at | near)])
    return declared(name, axes, _bilinear(data, layout, at, given, sizes, align_corners))


def _bilinear(data: Tensor, layout: str, at: dict[str, Expr], given: dict[str, int], sizes: dict[str, int], align_corners: bool) -> Expr:
    low, high, share = {}, {}, {}
    for x in "HW":
        place = cast(computed(data.dtype), at[x])
        corners = place * ((given[x] - 1) / max(sizes[x] - 1, 1))
        source = corners if align_corners else greater((place + 0.5) * (given[x] / sizes[x]) - 0.5, 0.0)
        whole = cast("int32", floor(source))
        low[x], high[x] = lesser(whole, given[x] - 1), lesser(whole + 1, given[x] - 1)
        share[x] = source - cast(computed(data.dtype), whole)
    rows = []
    for h in (low["H"], high["H"]):
        left, right = (data[in_layout(layout, at | {"H": h, "W": w})] for w in (low["W"], high["W"]))
        rows.append(left * (1.0 - share["W"]) + right * share["W"])
    return rows[0] * (1.0 - share["H"]) + rows[1] * share["H"]
