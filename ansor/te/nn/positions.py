"""Where the greatest or least element is."""

from __future__ import annotations

from ansor.te import scalar
from ansor.te.expr import Axis, Const, Expr, Reduce, as_expr, is_float
from ansor.te.nn.reduction import Dimensions, dimensions_of, over_dimensions
from ansor.te.tensor import Tensor, axes_of, declared


def argmax(data: Tensor, axis: Dimensions = None, keepdims: bool = False, select_last_index: bool = False, name: str = "argmax") -> Tensor:
    """Place (int32) of the greatest element over the dimensions `axis` (None: all); of several, places count in memory order.

    Of equal elements the first, or the last if so asked. A NaN is greater than every number, as in NumPy. Two reductions: the value, and its place.
    """
    return _place_of("max", data, axis, keepdims, select_last_index, name)


def argmin(data: Tensor, axis: Dimensions = None, keepdims: bool = False, select_last_index: bool = False, name: str = "argmin") -> Tensor:
    """Place (int32) of the least element; see `argmax`. A NaN is less than every number here, as in NumPy."""
    return _place_of("min", data, axis, keepdims, select_last_index, name)


def _place_of(extreme: str, data: Tensor, axis: Dimensions, keepdims: bool, last: bool, name: str) -> Tensor:
    chosen = dimensions_of(name, data, axis)
    best = over_dimensions(extreme, data, chosen, False, f"{name}_value")
    kept = tuple(d for d in range(data.ndim) if d not in chosen)
    out = axes_of(tuple(1 if d in chosen else extent for d, extent in enumerate(data.shape) if keepdims or d in kept))
    where = dict(zip(kept, [axis for d, axis in zip(range(data.ndim) if keepdims else kept, out, strict=True) if d in kept], strict=True))
    taps = {d: Axis(f"r{d}", data.shape[d], "reduce") for d in chosen}
    index: list[Axis] = [taps[d] if d in taps else where[d] for d in range(data.ndim)]
    value = data[tuple(index)]
    found = value == best[tuple(where[d] for d in kept)]
    if is_float(data.dtype):
        found = scalar.any(found, value != value)      # the extreme of values with a NaN is NaN, which equals nothing
    place, count = _flat(list(taps.values()))
    body = scalar.if_then_else(found, place, Const(-1 if last else count, "int32"))
    return declared(name, out, Reduce("max" if last else "min", body, tuple(taps.values()), "int32") if taps else as_expr(0))


def _flat(taps: list[Axis]) -> tuple[Expr, int]:
    place: Expr = Const(0, "int32")
    count = 1
    for tap in taps:
        place, count = place * tap.extent + tap, count * tap.extent
    return place, count
