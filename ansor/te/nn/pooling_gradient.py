"""The gradient of pooling: each element of the data sums its share of the gradients of its windows."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr, Reduce, cast, computed
from ansor.te.extreme_place import flat_place, place_of_extreme
from ansor.te.nn.layout import Padding, Sizes, Window, checked_layout, extents, in_layout, sizes, spatial_of, tap_position, windows
from ansor.te.nn.padding import pad_windows
from ansor.te.nn.pooling import elements_of, places_of, reaching
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else, min_value
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, declared


def pool_grad(grads: Tensor, data: Tensor, kernel: Sizes, stride: Sizes, padding: Padding, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW",
              count_include_pad: bool = True, name: str = "pool_grad") -> Tensor:
    """The gradient of `data`, given the gradient `grads` of its `pool1d`, `pool2d` or `pool3d` with these arguments. It has the shape of `data`.

    Of equal maxima in a window, the first receives its gradient.
    """
    if pool_type not in ("max", "avg"):
        raise DeclarationError(f"asked for {name} of {data.name} with pool_type {pool_type!r}; it is 'max' or 'avg'")
    spatial = spatial_of(name, "layout", layout)
    given = extents(name, data, "data", checked_layout(name, "layout", layout, "NC" + spatial, f"NC{spatial} or N{spatial}C"))
    kernels = dict(zip(spatial, sizes(name, "kernel", kernel, len(spatial)), strict=True))
    slides = windows(name, data, given, kernels, stride, padding, 1, spatial)
    places = {x: places_of(slides[x], ceil_mode) for x in spatial}
    pooled = in_layout(layout, given | places)
    if grads.shape != pooled or grads.dtype != data.dtype:
        raise DeclarationError(f"asked for {name} of {data.name} ({data.dtype}, shape {data.shape}) with the gradient {grads!r}; it has to be {data.dtype} of "
                               f"shape {pooled}, which the pooling has")
    first = _first_maximum(data, layout, slides, places, name) if pool_type == "max" else None

    out = {letter: Axis(letter.lower(), extent) for letter, extent in given.items()}
    back = {x: Axis(f"r{x.lower()}", -(-kernels[x] // slides[x].stride), "reduce") for x in spatial}
    window: dict[str, Expr] = {x: (out[x] + slides[x].before) // slides[x].stride - back[x] for x in spatial}
    tap = {x: out[x] + slides[x].before - window[x] * slides[x].stride for x in spatial}
    covering = [condition for x in spatial for condition in (window[x] >= 0, window[x] < places[x], tap[x] < kernels[x])]
    near = {x: greater(lesser(window[x], places[x] - 1), 0) for x in spatial}
    index = in_layout(layout, dict(out) | near)
    if first is not None:
        value = grads[index]
        covering.append(first[index] == flat_place((tap[x], kernels[x]) for x in kernels))
    else:
        count: Expr = Const(1, "int32")
        for x in spatial:
            count = count * elements_of(slides[x], near[x], places[x], count_include_pad)
        value = grads[index] / cast(computed(data.dtype), count)
    body = if_then_else(all_of(*covering), value, Const(0.0, computed(data.dtype)))
    return declared(name, in_layout(layout, out), Reduce("sum", body, tuple(back[x] for x in spatial), computed(data.dtype)))


def _first_maximum(data: Tensor, layout: str, slides: Mapping[str, Window], places: Mapping[str, int], name: str) -> Tensor:
    """For each window, the place of its first maximum, counted in the order of its dimensions."""
    reach = {x: reaching(slides[x], places[x]) for x in slides}
    padded = pad_windows(data, layout, reach, min_value(data.dtype).value)
    shape = dict(zip(layout, padded.shape, strict=True)) | dict(places)

    def one(label: str, best: Tensor | None) -> Tensor:
        out = {letter: Axis(letter.lower(), extent) for letter, extent in shape.items()}
        taps = {x: Axis(f"r{x.lower()}", slides[x].kernel, "reduce") for x in slides}
        index: dict[str, Expr] = dict(out) | {x: tap_position(out[x], taps[x], slides[x]) for x in slides}
        value, axes = padded[in_layout(layout, index)], in_layout(layout, out)
        if best is None:
            return declared(label, axes, Reduce("max", value, tuple(taps.values()), value.dtype))
        body = place_of_extreme(value, best[axes], [(taps[x], slides[x].kernel) for x in slides], 2**31 - 1)
        return declared(label, axes, Reduce("min", body, tuple(taps.values()), "int32"))

    return one(f"{name}_first", one(f"{name}_max", None))
