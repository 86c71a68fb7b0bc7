"""Tensors that read no other tensor's values: constants, ranges, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr, Number, as_expr, cast, const, is_float
from ansor.te.nn.layout import whole_numbers
from ansor.te.scalar import if_then_else
from ansor.te.tensor import Tensor, axes_of, declared


def full(shape: int | Sequence[int], dtype: str, fill_value: Number | Expr, name: str = "full") -> Tensor:
    """Every element is `fill_value`, a number or a constant expression, converted to `dtype`."""
    value = cast(dtype, fill_value) if isinstance(fill_value, Expr) else const(_converted(fill_value, dtype), dtype)
    return declared(name, axes_of(whole_numbers(shape)), value)


def full_like(x: Tensor, fill_value: Number | Expr, name: str = "full_like") -> Tensor:
    """`full` of the shape and dtype of x, whose values are not read."""
    return full(x.shape, x.dtype, fill_value, name)


def zeros(shape: int | Sequence[int], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """Zeros."""
    return full(shape, dtype, 0, name)


def ones(shape: int | Sequence[int], dtype: str = "float32", name: str = "ones") -> Tensor:
    """Ones."""
    return full(shape, dtype, 1, name)


def zeros_like(x: Tensor, name: str = "zeros_like") -> Tensor:
    """Zeros of the shape and dtype of x."""
    return full_like(x, 0, name)


def ones_like(x: Tensor, name: str = "ones_like") -> Tensor:
    """Ones of the shape and dtype of x."""
    return full_like(x, 1, name)


def arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: str = "float32", name: str = "arange") -> Tensor:
    """start, start + step, ... up to but not including stop; `arange(n)` begins with 0."""
    first, end = (0, start) if stop is None else (start, stop)
    count = math.ceil((end - first) / step) if step else 0
    if count < 1:
        raise DeclarationError(f"asked for {name} from {first} to {end} by {step}, which has no element; extents have to be at least 1")
    working = "float32" if any(isinstance(number, float) for number in (first, step)) and not is_float(dtype) else dtype
    place = Axis("i0", count)
    value = cast(working, place) * as_expr(step, working) + as_expr(first, working)
    return declared(name, (place,), cast(dtype, value))


def shape_of(x: Tensor, dtype: str = "int32", name: str = "shape_of") -> Tensor:
    """The extents of x as a tensor of one dimension."""
    if not x.shape:
        raise DeclarationError(f"asked for {name} of {x.name}, which has no dimension; the result would be empty, and extents have to be at least 1")
    (place,) = axes_of((x.ndim,))
    return declared(name, (place,), table(place, x.shape, dtype))


def size_of(x: Tensor, dtype: str = "int32", name: str = "size_of") -> Tensor:
    """The number of elements of x as a tensor of rank 0."""
    return declared(name, (), const(x.size, dtype))


def table(place: Expr, values: Sequence[Number], dtype: str) -> Expr:
    """values[place], written as selects, for tables of a few entries."""
    *others, last = values
    chosen: Expr = const(last, dtype)
    for position in reversed(range(len(others))):
        chosen = if_then_else(place == position, const(others[position], dtype), chosen)
    return chosen


def _converted(value: Number, dtype: str) -> Number:
    return value if is_float(dtype) or dtype == "bool" or isinstance(value, bool) else int(value)
