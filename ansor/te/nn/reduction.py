"""Reductions over whole dimensions: sum, mean, max, min, prod, 2-norm."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te import scalar
from ansor.te.expr import Axis, Expr, cast, is_float
from ansor.te.nn.layout import reduced, tap_axis, whole_numbers
from ansor.te.tensor import Scalar, Tensor, declared, elementwise

Dimensions = int | Sequence[int] | None


def sum(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "sum") -> Tensor:
    """Sum over the dimensions `axis` (None: all)."""
    return over_dimensions("sum", data, axis, keepdims, name)


def prod(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "prod") -> Tensor:
    """Product over the dimensions `axis` (None: all)."""
    return over_dimensions("prod", data, axis, keepdims, name)


def max(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "max") -> Tensor:
    """Maximum over the dimensions `axis` (None: all)."""
    return over_dimensions("max", data, axis, keepdims, name)


def min(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "min") -> Tensor:
    """Minimum over the dimensions `axis` (None: all)."""
    return over_dimensions("min", data, axis, keepdims, name)


def all(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "all") -> Tensor:
    """Whether all elements over the dimensions `axis` (None: all) are nonzero: bool. Two stages, a minimum of int8 and a comparison."""
    return _truth_of("min", data, axis, keepdims, name)


def any(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "any") -> Tensor:
    """Whether any element over the dimensions `axis` (None: all) is nonzero: bool. Two stages, a maximum of int8 and a comparison."""
    return _truth_of("max", data, axis, keepdims, name)


def mean(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "mean") -> Tensor:
    """Average over the dimensions `axis` (None: all): two stages, sum and division."""
    check_float(name, data)
    total = over_dimensions("sum", data, axis, keepdims, f"{name}_sum")
    return elementwise(total, lambda value: value / float(data.size // total.size), name)


def norm(data: Tensor, axis: Dimensions = None, keepdims: bool = False, name: str = "norm") -> Tensor:
    """2-norm over the dimensions `axis` (None: all): two stages, sum of squares and square root."""
    check_float(name, data)
    total = over_dimensions("sum", data, axis, keepdims, f"{name}_squares", lambda value: value * value)
    return elementwise(total, scalar.sqrt, name)


def over_dimensions(combiner: str, data: Tensor, axis: Dimensions, keepdims: bool, name: str, function: Scalar = lambda value: value) -> Tensor:
    """`function` of every element, combined over the dimensions `axis`."""
    chosen = dimensions_of(name, data, axis)
    taps = {d: tap_axis(f"r{d}", data.shape[d]) for d in chosen}
    kept = {d: Axis(f"i{d}", 1 if d in taps else extent) for d, extent in enumerate(data.shape) if keepdims or d not in taps}
    index: list[Expr] = [taps[d] if d in taps else kept[d] for d in range(data.ndim)]
    return declared(name, tuple(kept.values()), reduced(combiner, function(data[tuple(index)]), list(taps.values())))


def _truth_of(combiner: str, data: Tensor, axis: Dimensions, keepdims: bool, name: str) -> Tensor:
    def as_number(value: Expr) -> Expr:
        return cast("int8", value if value.dtype == "bool" else value != 0)

    return elementwise(over_dimensions(combiner, data, axis, keepdims, f"{name}_{combiner}", as_number), lambda value: value != 0, name)


def dimensions_of(operator: str, data: Tensor, axis: Dimensions) -> tuple[int, ...]:
    """The dimensions of `axis`, counted from the front, ascending; None means all."""
    given = tuple(range(data.ndim)) if axis is None else whole_numbers(axis)
    chosen = sorted({d + data.ndim if d < 0 else d for d in given})
    if len(chosen) != len(given) or not set(chosen) <= set(range(data.ndim)):
        raise DeclarationError(
            f"asked for {operator} of {data.name} with shape {data.shape} over dimensions {axis}; give different ones in {-data.ndim}..{data.ndim - 1}"
        )
    return tuple(chosen)


def dimension_of(operator: str, data: Tensor, axis: int) -> int:
    """One dimension, counted from the front."""
    return dimensions_of(operator, data, axis)[0]


def check_float(operator: str, data: Tensor) -> None:
    """Raise DeclarationError when `data` has no floating-point dtype."""
    if not is_float(data.dtype):
        raise DeclarationError(f"asked for {operator} of {data.dtype} tensor {data.name}; it is defined for floats: use te.nn.cast first")
