"""Pooling: sliding windows, adaptive (given output size) and global, by maximum or average."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr, cast, computed, is_float
from ansor.te.nn.layout import Padding, Sizes, Window, checked_layout, extents, in_layout, reduced, sizes, spatial_of, tap_axis, tap_position, windows
from ansor.te.nn.padding import pad_windows
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else, min_value
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, declared


def pool1d(data: Tensor, kernel: Sizes, stride: Sizes = 1, dilation: Sizes = 1, padding: Padding = 0, pool_type: str = "max", ceil_mode: bool = False,
           layout: str = "NCW", count_include_pad: bool = True, name: str = "pool1d") -> Tensor:
    """Pooling over one spatial dimension, see `pool2d`."""
    return pooled("W", data, Pooling(kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad), name)


def pool2d(data: Tensor, kernel: Sizes, stride: Sizes = 1, dilation: Sizes = 1, padding: Padding = 0, pool_type: str = "max", ceil_mode: bool = False,
           layout: str = "NCHW", count_include_pad: bool = True, name: str = "pool2d") -> Tensor:
    """The maximum (pool_type "max") or average ("avg") of every kernel-sized window.

    `ceil_mode`: include windows that begin inside the (front-padded) data and end after it. `count_include_pad`: the average divides by
    all elements of the window including padding, else only by those of the data. Shapes and results match PyTorch's.
    """
    return pooled("HW", data, Pooling(kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad), name)


def pool3d(data: Tensor, kernel: Sizes, stride: Sizes = 1, dilation: Sizes = 1, padding: Padding = 0, pool_type: str = "max", ceil_mode: bool = False,
           layout: str = "NCDHW", count_include_pad: bool = True, name: str = "pool3d") -> Tensor:
    """Pooling over three spatial dimensions, see `pool2d`."""
    return pooled("DHW", data, Pooling(kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad), name)


@dataclass(frozen=True)
class Pooling:
    """Which windows to pool, and how: the arguments that the functions above share."""

    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    padding: Padding
    pool_type: str
    ceil_mode: bool
    layout: str
    count_include_pad: bool


def pooled(spatial: str, data: Tensor, how: Pooling, name: str) -> Tensor:
    """The pooling over the `spatial` letters, for the functions above."""
    layout, pool_type = how.layout, how.pool_type
    checked_layout(name, "layout", layout, "NC" + spatial, f"NC{spatial} or N{spatial}C")
    _check_type(name, data, pool_type)
    given = extents(name, data, "data", layout)
    kernels = dict(zip(spatial, sizes(name, "kernel", how.kernel, len(spatial)), strict=True))
    slides = windows(name, data, given, kernels, how.stride, how.padding, how.dilation, spatial)
    places = {x: places_of(slides[x], how.ceil_mode) for x in spatial}
    reach = {x: reaching(slides[x], places[x]) for x in spatial}
    padded = pad_windows(data, layout, reach, min_value(data.dtype).value if pool_type == "max" else 0)

    out = {"N": Axis("n", given["N"]), "C": Axis("c", given["C"])} | {x: Axis(x.lower(), places[x]) for x in spatial}
    taps = {x: tap_axis(f"r{x.lower()}", kernels[x]) for x in spatial}
    index: dict[str, Expr] = dict(out) | {x: tap_position(out[x], taps[x], slides[x]) for x in spatial}
    value = padded[in_layout(layout, index)]

    def counts(at: Mapping[str, Axis]) -> list[Expr]:
        return [elements_of(slides[x], at[x], places[x], how.count_include_pad) for x in spatial]

    return _over_taps(name, pool_type, value, list(taps.values()), layout, out, counts)


def adaptive_pool(data: Tensor, output_size: Sizes, pool_type: str = "avg", layout: str = "NCHW", name: str = "adaptive_pool") -> Tensor:
    """Pooling to a given spatial size: output place o covers the data from floor(o * H / OH) to ceil((o + 1) * H / OH). 1 to 3 spatial dimensions."""
    spatial = spatial_of(name, "layout", layout)
    _check_type(name, data, pool_type)
    given = extents(name, data, "data", layout)
    wanted = dict(zip(spatial, sizes(name, "output_size", output_size, len(spatial)), strict=True))
    out = {"N": Axis("n", given["N"]), "C": Axis("c", given["C"])} | {x: Axis(x.lower(), wanted[x]) for x in spatial}
    begin = {x: _begin(out[x], given[x]) for x in spatial}
    taps = {x: tap_axis(f"r{x.lower()}", _widest(given[x], wanted[x])) for x in spatial}
    value = data[in_layout(layout, dict(out) | {x: begin[x] + taps[x] for x in spatial})]
    inside = [begin[x] + taps[x] < _begin_of_next(out[x], given[x]) for x in spatial if given[x] % wanted[x]]
    if inside:
        value = if_then_else(all_of(*inside), value, min_value(data.dtype) if pool_type == "max" else Const(0.0, computed(data.dtype)))
    return _over_taps(name, pool_type, value, list(taps.values()), layout, out, lambda at: [_adaptive_count(at[x], given[x]) for x in spatial])


def _over_taps(
    name: str, pool_type: str, value: Expr, taps: Sequence[Axis | Const], layout: str, out: Mapping[str, Axis],
    counts: Callable[[Mapping[str, Axis]], list[Expr]],
) -> Tensor:  # fmt: skip
    """The maximum of `value` over the taps of each window; or the mean, its sum divided by the product of `counts` at the axes of the result."""
    axes = in_layout(layout, out)
    if pool_type == "max":
        return declared(name, axes, reduced("max", value, taps))
    total = declared(f"{name}_sum", axes, reduced("sum", value, taps))
    fresh = {letter: Axis(axis.name, axis.extent) for letter, axis in out.items()}
    places = in_layout(layout, fresh)
    return declared(name, places, total[places] / cast(computed(value.dtype), fold(lambda a, b: a * b, counts(fresh))))


def global_pool(data: Tensor, pool_type: str = "avg", layout: str = "NCHW", name: str = "global_pool") -> Tensor:
    """Pooling over each whole channel; the spatial extents become 1."""
    return adaptive_pool(data, 1, pool_type, layout, name)


def places_of(window: Window, ceil_mode: bool) -> int:
    """The number of places of the window; with `ceil_mode`, including those that begin inside the (front-padded) data and end after it."""
    if not ceil_mode:
        return window.output
    places = -(-(window.size + window.before + window.after - window.span) // window.stride) + 1
    begins_inside = (places - 1) * window.stride < window.size + window.before
    return places if begins_inside else places - 1


def reaching(window: Window, places: int) -> Window:
    """The window with at least its own padding after the data, and enough for its last place."""
    needed = (places - 1) * window.stride + window.span - window.size - window.before
    return Window(window.letter, window.size, window.kernel, window.stride, window.dilation, window.before, max(window.after, needed))


def elements_of(window: Window, place: Expr, places: int, include_pad: bool) -> Expr:
    """The number of elements of the window at `place` that an average divides by; 1 where there are none."""
    low, high = (-window.before, window.size + window.after) if include_pad else (0, window.size)
    first, last = -window.before, (places - 1) * window.stride - window.before + window.span - 1
    if first >= low and last < high:
        return Const(window.kernel, "int32")
    start = place * window.stride - window.before
    if window.dilation == 1:
        count = lesser(start + window.kernel, high) - greater(start, low)
    else:
        step = window.dilation
        missing_before = greater((low - start + step - 1) // step, 0)
        count = lesser((high - 1 - start) // step, window.kernel - 1) - missing_before + 1
    reached = [any(low <= n * window.stride - window.before + tap * window.dilation < high for tap in range(window.kernel)) for n in range(places)]
    return count if all(reached) else greater(count, 1)


def _begin(place: Axis, size: int) -> Expr:
    if size % place.extent == 0:
        return place * (size // place.extent) if place.extent > 1 else Const(0, "int32")
    return place * size // place.extent


def _begin_of_next(place: Axis, size: int) -> Expr:
    return (place * size + (size + place.extent - 1)) // place.extent


def _adaptive_count(place: Axis, size: int) -> Expr:
    return _begin_of_next(place, size) - _begin(place, size) if size % place.extent else Const(size // place.extent, "int32")


def _widest(size: int, places: int) -> int:
    return max(-(-(o + 1) * size // places) - o * size // places for o in range(places))


def _check_type(name: str, data: Tensor, pool_type: str) -> None:
    if pool_type not in ("max", "avg"):
        raise DeclarationError(f"asked for {name} of {data.name} with pool_type {pool_type!r}; it is 'max' or 'avg'")
    if pool_type == "avg" and not is_float(data.dtype):
        raise DeclarationError(f"asked for {name} of {data.dtype} tensor {data.name} with pool_type 'avg'; averages need floats: use te.nn.cast first")
