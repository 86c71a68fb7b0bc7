"""Running sums and products along a dimension.

Every element is its own reduction over the elements up to it: n (n + 1) / 2 steps for n elements, all of which may run in parallel.
"""

from __future__ import annotations

from ansor.te.expr import Axis, Const, Reduce, cast, computed, identity_of
from ansor.te.nn.reduction import dimension_of
from ansor.te.nn.shape import reshape
from ansor.te.scalar import if_then_else
from ansor.te.tensor import Tensor, axes_of, declared


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool = False, name: str = "cumsum") -> Tensor:
    """Running sums along dimension `axis` (None: of `data` flattened); `exclusive` excludes the element itself."""
    return _running("sum", data, axis, dtype, exclusive, name)


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool = False, name: str = "cumprod") -> Tensor:
    """Running products along dimension `axis` (None: of `data` flattened); `exclusive` excludes the element itself."""
    return _running("prod", data, axis, dtype, exclusive, name)


def _running(combiner: str, data: Tensor, axis: int | None, dtype: str | None, exclusive: bool, name: str) -> Tensor:
    if axis is None:
        data, axis = reshape(data, -1, f"{name}_flat"), 0
    chosen = dimension_of(name, data, axis)
    working = computed(dtype or ("int32" if data.dtype == "bool" else data.dtype))
    axes = axes_of(data.shape)
    tap = Axis("r", data.shape[chosen], "reduce")
    value = cast(working, data[(*axes[:chosen], tap, *axes[chosen + 1:])])
    counted = tap < axes[chosen] if exclusive else tap <= axes[chosen]
    body = if_then_else(counted, value, Const(identity_of(combiner, working), working))
    return declared(name, axes, Reduce(combiner, body, (tap,), working))
