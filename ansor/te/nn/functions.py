"""Functions of one element: rounding, signs, trigonometry, logarithms, and tests for NaN and infinity."""

from __future__ import annotations

import math

from ansor.te import scalar
from ansor.te.expr import Const, Expr, is_float
from ansor.te.tensor import Tensor, elementwise


def floor(x: Tensor, name: str = "floor") -> Tensor:
    """The greatest whole number not above x; integers stay the same."""
    return elementwise(x, scalar.floor, name)


def ceil(x: Tensor, name: str = "ceil") -> Tensor:
    """The least whole number not below x; integers stay the same."""
    return elementwise(x, scalar.ceil, name)


def trunc(x: Tensor, name: str = "trunc") -> Tensor:
    """x without its fraction; integers have none."""
    return elementwise(x, scalar.trunc, name)


def round(x: Tensor, name: str = "round") -> Tensor:
    """The nearest whole number, rounded like `te.round`; integers stay the same."""
    return elementwise(x, scalar.round, name)


def sign(x: Tensor, name: str = "sign") -> Tensor:
    """1, 0 or -1, in the dtype of x; 0 for NaN."""
    return elementwise(x, _sign, name)


def sin(x: Tensor, name: str = "sin") -> Tensor:
    """Sine."""
    return elementwise(x, scalar.sin, name)


def cos(x: Tensor, name: str = "cos") -> Tensor:
    """Cosine."""
    return elementwise(x, scalar.cos, name)


def tan(x: Tensor, name: str = "tan") -> Tensor:
    """Tangent."""
    return elementwise(x, scalar.tan, name)


def cosh(x: Tensor, name: str = "cosh") -> Tensor:
    """Hyperbolic cosine."""
    return elementwise(x, scalar.cosh, name)


def sinh(x: Tensor, name: str = "sinh") -> Tensor:
    """Hyperbolic sine."""
    return elementwise(x, scalar.sinh, name)


def asin(x: Tensor, name: str = "asin") -> Tensor:
    """Arc sine."""
    return elementwise(x, scalar.asin, name)


def acos(x: Tensor, name: str = "acos") -> Tensor:
    """Arc cosine."""
    return elementwise(x, scalar.acos, name)


def atan(x: Tensor, name: str = "atan") -> Tensor:
    """Arc tangent."""
    return elementwise(x, scalar.atan, name)


def asinh(x: Tensor, name: str = "asinh") -> Tensor:
    """Inverse hyperbolic sine."""
    return elementwise(x, scalar.asinh, name)


def acosh(x: Tensor, name: str = "acosh") -> Tensor:
    """Inverse hyperbolic cosine; NaN below 1."""
    return elementwise(x, scalar.acosh, name)


def atanh(x: Tensor, name: str = "atanh") -> Tensor:
    """Inverse hyperbolic tangent; NaN beyond -1..1."""
    return elementwise(x, scalar.atanh, name)


def log2(x: Tensor, name: str = "log2") -> Tensor:
    """Logarithm to base 2."""
    return elementwise(x, scalar.log2, name)


def log10(x: Tensor, name: str = "log10") -> Tensor:
    """Logarithm to base 10."""
    return elementwise(x, scalar.log10, name)


def isnan(x: Tensor, name: str = "isnan") -> Tensor:
    """Whether x is not a number: bool."""
    return elementwise(x, lambda v: v != v, name)


def isinf(x: Tensor, name: str = "isinf") -> Tensor:
    """Whether x is plus or minus infinity: bool."""
    return elementwise(x, lambda v: scalar.abs(v) == math.inf if is_float(v.dtype) else _never(v), name)


def isfinite(x: Tensor, name: str = "isfinite") -> Tensor:
    """Whether x is a number, and not infinite: bool."""
    return elementwise(x, lambda v: scalar.abs(v) < math.inf if is_float(v.dtype) else scalar.logical_not(_never(v)), name)


def _sign(value: Expr) -> Expr:
    one, zero = Const(1.0 if is_float(value.dtype) else 1, value.dtype), Const(0.0 if is_float(value.dtype) else 0, value.dtype)
    return scalar.if_then_else(value > zero, one, scalar.if_then_else(value < zero, zero - one, zero))


def _never(value: Expr) -> Expr:
    """False for every value; it still reads x, so that the tensor has the shape of x."""
    return value != value
