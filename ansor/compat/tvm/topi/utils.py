"""`tvm.topi.utils`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # missing names raise
from ansor.ir.access import producers
from ansor.manual.schedule import Schedule
from ansor.te.declaration import compute
from ansor.te.expr import Const, Expr
from ansor.te.nn.creation import table
from ansor.te.tensor import Operation, Tensor

Simple = TypeVar("Simple")


def get_const_int(expr: SupportsIndex | Expr) -> int:
    """An expression as a Python integer. Raises TypeError unless it is an integer constant."""
    return operator.index(expr.value if isinstance(expr, Const) else expr)  # type: ignore[arg-type]  # raises TypeError for a float


def get_const_tuple(in_tuple: Iterable[SupportsIndex | Expr]) -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    return tuple(map(get_const_int, in_tuple))


def traverse_inline(s: Schedule, final_op: Operation, callback: Callable[[Operation], object]) -> None:
    """Call `callback` on `final_op` and every operation that it depends on, and inline all others that have no reduction."""
    seen: set[int] = set()

    def visit(op: Operation) -> None:
        if id(op.tensor) in seen:
            return
        seen.add(id(op.tensor))
        if is_injective(op) and op != final_op:
            s[op].compute_inline()
        for tensor in producers(op.tensor):
            if not tensor.is_placeholder:
                visit(tensor.op)
        callback(op)

    visit(final_op)


def is_injective(op: Operation) -> bool:
    """Whether an operation computes a tensor without a reduction. TVM decides this by tags, as `topi.tag.is_injective` does."""
    return not op.reduce_axis and not op.tensor.is_placeholder


def nchw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocked batches and channels: `NCHW1n16c`."""
    return layout_info.startswith("NCHW") and {"n", "c"} <= set(layout_info[4:])


def nchw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with only blocked channels: `NCHW16c`."""
    return layout_info.startswith("NCHW") and "c" in layout_info[4:] and "n" not in layout_info[4:]


class InvalidShapeError(ValueError):
    """A shape that an operator does not accept, for scripts that raise or catch it. Our operators raise DeclarationError, which is also a ValueError."""


def get_const_float(expr: Const | float) -> float:
    """A constant as a Python float."""
    return float(expr.value if isinstance(expr, Const) else expr)


def get_float_tuple(in_tuple: Iterable[Const | float]) -> tuple[float, ...]:
    """Constants as Python floats."""
    return tuple(map(get_const_float, in_tuple))


def equal_const_int(expr: object, value: int) -> bool:
    """Whether an expression is this integer constant."""
    found = expr.value if isinstance(expr, Const) else expr
    return isinstance(found, int) and found == value


def prod(x: Iterable[int]) -> int:
    """The product."""
    return math.prod(x)


def simplify(expr: Simple) -> Simple:
    """Return the expression unchanged: it was simplified when it was built."""
    return expr


def ceil_div(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def is_empty_shape(shape: Iterable[int]) -> bool:
    """Whether a shape has no elements. Tensors here are never empty."""
    return any(extent == 0 for extent in shape)


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of two that divides n and is at most `max_value`."""
    factor = 1
    while n % (factor * 2) == 0 and (max_value is None or factor * 2 <= max_value):
        factor *= 2
    return factor


def ravel_index(indices: Sequence[Expr | int], shape: Sequence[int]) -> Expr | int:
    """The row-major offset of the element at `indices`."""
    place: Expr | int = 0
    for index, extent in zip(indices, shape, strict=True):
        place = place * extent + index
    return place


def unravel_index(idx: Expr | int, shape: Sequence[int]) -> list[Expr | int]:
    """The indices of the element at a row-major offset."""
    found: list[Expr | int] = []
    for extent in reversed(shape):
        found.insert(0, idx % extent)
        idx = idx // extent
    return found


def const_matrix(matrix: NDArray[np.generic], name: str = "const_matrix") -> Tensor:
    """A constant matrix as a tensor that needs no input: its indices select the elements."""
    rows, columns = matrix.shape
    dtype = str(matrix.dtype)

    def element(i: Expr, j: Expr) -> Expr:
        return table(i * columns + j, matrix.ravel().tolist(), dtype)

    return compute((rows, columns), element, name=name, attrs={"const_matrix": True})
