"""Division with a remainder, bits and shifts, element by element, with NumPy's broadcasting."""

from __future__ import annotations

import operator

from ansor.te import scalar
from ansor.te.expr import Expr, Number, is_float
from ansor.te.nn.elementwise import combine, elementwise
from ansor.te.tensor import Tensor


def floor_divide(x: Tensor | Number, y: Tensor | Number, name: str = "floor_divide") -> Tensor:
    """x / y rounded towards minus infinity, in the dtype of the operands."""
    return combine(floor_quotient, name, x, y)


def floor_mod(x: Tensor | Number, y: Tensor | Number, name: str = "floor_mod") -> Tensor:
    """Remainder of `floor_divide`: it has the sign of y."""
    return combine(floor_remainder, name, x, y)


def trunc_divide(x: Tensor | Number, y: Tensor | Number, name: str = "trunc_divide") -> Tensor:
    """x / y rounded towards zero, in the dtype of the operands."""
    return combine(trunc_quotient, name, x, y)


def trunc_mod(x: Tensor | Number, y: Tensor | Number, name: str = "trunc_mod") -> Tensor:
    """Remainder of `trunc_divide`: it has the sign of x."""
    return combine(trunc_remainder, name, x, y)


def bitwise_and(x: Tensor | Number, y: Tensor | Number, name: str = "bitwise_and") -> Tensor:
    """x & y of integers."""
    return combine(operator.and_, name, x, y)


def bitwise_or(x: Tensor | Number, y: Tensor | Number, name: str = "bitwise_or") -> Tensor:
    """x | y of integers."""
    return combine(operator.or_, name, x, y)


def bitwise_xor(x: Tensor | Number, y: Tensor | Number, name: str = "bitwise_xor") -> Tensor:
    """x ^ y of integers."""
    return combine(operator.xor, name, x, y)


def bitwise_not(x: Tensor, name: str = "bitwise_not") -> Tensor:
    """~x of integers."""
    return elementwise(x, operator.invert, name)


def left_shift(x: Tensor | Number, y: Tensor | Number, name: str = "left_shift") -> Tensor:
    """x << y of integers."""
    return combine(operator.lshift, name, x, y)


def right_shift(x: Tensor | Number, y: Tensor | Number, name: str = "right_shift") -> Tensor:
    """x >> y of integers; the sign is kept."""
    return combine(operator.rshift, name, x, y)


def floor_quotient(a: Expr, b: Expr) -> Expr:
    """Rounded towards minus infinity, of integers or floats."""
    return scalar.floor(a / b) if _floats(a, b) else scalar.floordiv(a, b)


def floor_remainder(a: Expr, b: Expr) -> Expr:
    """What `floor_quotient` leaves."""
    return a - scalar.floor(a / b) * b if _floats(a, b) else scalar.floormod(a, b)


def trunc_quotient(a: Expr, b: Expr) -> Expr:
    """Rounded towards zero, of integers or floats."""
    return scalar.trunc(a / b) if _floats(a, b) else scalar.truncdiv(a, b)


def trunc_remainder(a: Expr, b: Expr) -> Expr:
    """What `trunc_quotient` leaves."""
    return a - scalar.trunc(a / b) * b if _floats(a, b) else scalar.truncmod(a, b)


def _floats(a: Expr | Number, b: Expr | Number) -> bool:
    return any(is_float(value.dtype) if isinstance(value, Expr) else isinstance(value, float) for value in (a, b))
