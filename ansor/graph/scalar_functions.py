"""Elementwise functions that declarations and PyTorch both have, by the name that nodes use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from ansor import te
from ansor.te.expr import Expr, binary

OF_ONE: Mapping[str, Callable[[Expr], Expr]] = {
    name: getattr(te, name)
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "exp2", "log10", "log1p", "sinh", "tan")
}
"""Functions that PyTorch has under the same name."""

PAIRS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "atan2": te.atan2,
    "copysign": te.copysign,
    "hypot": te.hypot,
    "nextafter": te.nextafter,
    "floor_divide": lambda x, y: binary("floordiv", x, y),
    "fmod": lambda x, y: binary("truncmod", x, y),
    "remainder": lambda x, y: binary("floormod", x, y),
    "logical_xor": lambda x, y: binary("ne", x, y),
    "bitwise_and": lambda x, y: binary("bitand", x, y),
    "bitwise_or": lambda x, y: binary("bitor", x, y),
    "bitwise_xor": lambda x, y: binary("bitxor", x, y),
}
"""Functions of two operands that PyTorch has under the same name."""

_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277)
"""Coefficients of a polynomial in t = 1 / (1 + |x| / 2): erfc(|x|) = t exp(-x^2 + it), to a relative error of 1.2e-7 (Numerical Recipes)."""

_ERFINV = (
    (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
    (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)
"""Coefficients of polynomials in w - 2.5 and sqrt(w) - 3, w = -log(1 - x^2): erfinv(x) = x times one of them, in single precision (Giles, 2012)."""

_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
            -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
"""Lanczos coefficients of the gamma function, g = 7."""


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """A polynomial in `x`; the coefficient of the highest power comes first."""
    value: Expr = te.const(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def expm1(x: Expr) -> Expr:
    """e^x - 1 without cancellation: tanh(x / 2) is (e^x - 1) / (e^x + 1)."""
    return te.tanh(x * 0.5) * (te.exp(x) + 1.0)


def erfc(x: Expr) -> Expr:
    """1 - erf(x), with a small relative error even where the value is small."""
    t = 1.0 / (te.abs(x) * 0.5 + 1.0)
    tail = t * te.exp(polynomial(t, _ERFC[::-1]) - x * x)
    return te.if_then_else(x < 0.0, 2.0 - tail, tail)


def erfinv(x: Expr) -> Expr:
    """The inverse of erf: infinite at -1 and 1, NaN beyond."""
    w = -te.log((1.0 - x) * (1.0 + x))
    inside = te.if_then_else(w < 5.0, polynomial(w - 2.5, _ERFINV[0]), polynomial(te.sqrt(te.max(w, 5.0)) - 3.0, _ERFINV[1])) * x
    return te.if_then_else(te.abs(x) == 1.0, x * te.infinity(x.dtype), inside)


def lgamma(x: Expr) -> Expr:
    """log |gamma(x)|: the Lanczos approximation from 0.5 on, the reflection formula below."""
    low = x < 0.5
    z = te.if_then_else(low, -x, x - 1.0)
    total: Expr = te.const(_LANCZOS[0], x.dtype)
    for k, coefficient in enumerate(_LANCZOS[1:], start=1):
        total = total + coefficient / (z + float(k))
    t = z + 7.5
    direct = te.log(t) * (z + 0.5) - t + te.log(total) + math.log(math.sqrt(2 * math.pi))
    turned = math.log(math.pi) - te.log(te.abs(te.sin((x - te.round(x)) * math.pi))) - direct
    return te.if_then_else(te.isinf(x), te.infinity(x.dtype), te.if_then_else(low, turned, direct))


def digamma(x: Expr) -> Expr:
    """The derivative of log gamma(x): the recurrence shifts x to at least 6, where the asymptotic series applies; for x <= 0, the reflection formula."""
    low = x <= 0.0
    z: Expr = te.if_then_else(low, 1.0 - x, x)
    before: Expr = te.const(0.0, x.dtype)
    for step in range(6):
        before = before + 1.0 / (z + float(step))
    t = z + 6.0
    u = 1.0 / (t * t)
    series = te.log(t) - 0.5 / t - u * polynomial(u, (-1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)) * -1.0 - before
    beyond = x - te.round(x)
    turned = te.if_then_else(beyond == 0.0, te.const(math.nan, x.dtype), series - math.pi / te.tan(beyond * math.pi))
    return te.if_then_else(low, te.if_then_else(x == 0.0, te.copysign(te.infinity(x.dtype), x) * -1.0, turned), series)


OF_FLOAT32: Mapping[str, tuple[Callable[[Expr], Expr], Callable[..., torch.Tensor]]] = {
    "erfc": (erfc, torch.erfc),
    "erfinv": (erfinv, torch.erfinv),
    "lgamma": (lgamma, torch.lgamma),
    "digamma": (digamma, torch.digamma),
}
"""Approximations accurate to single precision, and PyTorch's own functions."""

FORMULAS: Mapping[str, tuple[Callable[[Expr], Expr], Callable[..., torch.Tensor]]] = {
    **OF_FLOAT32,
    "expm1": (expm1, torch.expm1),
    "sign": (lambda x: te.if_then_else(x > 0, te.const(1, x.dtype), te.if_then_else(x < 0, te.const(-1, x.dtype), te.const(0, x.dtype))), torch.sign),
    "isfinite": (te.isfinite, torch.isfinite),
    "bitwise_not": (lambda x: ~x, torch.bitwise_not),
}
"""Functions composed of others, and PyTorch's own."""
