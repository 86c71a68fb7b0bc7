"""Integer division and remainders, bitwise operators and shifts, elementwise, with NumPy's broadcasting."""

from __future__ import annotations

import operator

from ansor.te import scalar
from ansor.te.expr import Number
from ansor.te.nn.elementwise import combine
from ansor.te.tensor import Tensor, elementwise


def floor_divide(x: Tensor | Number, y: Tensor | Number, name: str = "floor_divide") -> Tensor:
    """x / y rounded towards minus infinity, in the dtype of the operands."""
    return combine(scalar.floordiv, name, x, y)


def floor_mod(x: Tensor | Number, y: Tensor | Number, name: str = "floor_mod") -> Tensor:
    """Remainder of `floor_divide`: it has the sign of y."""
    return combine(scalar.floormod, name, x, y)


def trunc_divide(x: Tensor | Number, y: Tensor | Number, name: str = "trunc_divide") -> Tensor:
    """x / y rounded towards zero, in the dtype of the operands."""
    return combine(scalar.truncdiv, name, x, y)


def trunc_mod(x: Tensor | Number, y: Tensor | Number, name: str = "trunc_mod") -> Tensor:
    """Remainder of `trunc_divide`: it has the sign of x."""
    return combine(scalar.truncmod, name, x, y)


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
