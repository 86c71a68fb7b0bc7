"""The place of the greatest or least element."""

from __future__ import annotations

import math

from ansor.te.expr import Axis, Reduce, as_expr
from ansor.te.extreme_place import place_of_extreme
from ansor.te.nn.reduction import Dimensions, dimensions_of, over_dimensions
from ansor.te.tensor import Tensor, axes_of, declared


def argmax(data: Tensor, axis: Dimensions = None, keepdims: bool = False, select_last_index: bool = False, name: str = "argmax") -> Tensor:
    """The place (int32) of the greatest element over the dimensions `axis` (None: all); over several dimensions, places count in memory order.

    Of equal elements, the first is taken, or the last with `select_last_index`. As in NumPy, NaN is greater than every number. Two reductions: value and place.
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
    nowhere = -1 if last else math.prod(tap.extent for tap in taps.values())
    body = place_of_extreme(value, best[tuple(where[d] for d in kept)], [(tap, tap.extent) for tap in taps.values()], nowhere)
    return declared(name, out, Reduce("max" if last else "min", body, tuple(taps.values()), "int32") if taps else as_expr(0))
