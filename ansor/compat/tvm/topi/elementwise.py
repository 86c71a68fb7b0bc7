"""`tvm.topi`'s functions of every element. Those that are defined for floats take integers and conditions as float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from ansor.te import nn, scalar
from ansor.te.expr import Expr, Number, as_expr, is_float
from ansor.te.expr import cast as cast_scalar
from ansor.te.nn.elementwise import elementwise
from ansor.te.tensor import Tensor

Unary = Callable[[Tensor], Tensor]


def of_float(name: str, function: Callable[[Tensor], Tensor]) -> Unary:
    """The operator of that name, of floats and of what can be one."""

    def applied(x: Tensor) -> Tensor:
        return function(x if is_float(x.dtype) else nn.cast(x, "float32", f"{x.name}_float"))

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"`nn.{function.__name__}`."
    return applied


exp = of_float("exp", nn.exp)
erf = of_float("erf", nn.erf)
tanh = of_float("tanh", nn.tanh)
tan = of_float("tan", nn.tan)
cos = of_float("cos", nn.cos)
cosh = of_float("cosh", nn.cosh)
sin = of_float("sin", nn.sin)
sinh = of_float("sinh", nn.sinh)
log = of_float("log", nn.log)
log2 = of_float("log2", nn.log2)
log10 = of_float("log10", nn.log10)
sqrt = of_float("sqrt", nn.sqrt)
rsqrt = of_float("rsqrt", nn.rsqrt)
sigmoid = of_float("sigmoid", nn.sigmoid)
fast_exp = of_float("fast_exp", nn.exp)
fast_tanh = of_float("fast_tanh", nn.tanh)
fast_erf = of_float("fast_erf", nn.erf)


def identity(x: Tensor) -> Tensor:
    """A copy."""
    return elementwise(x, lambda value: value, "identity")


def negative(x: Tensor) -> Tensor:
    """`nn.negative`."""
    return nn.negative(x)


def abs(x: Tensor) -> Tensor:
    """`nn.abs`."""
    return nn.abs(x)


def sign(x: Tensor) -> Tensor:
    """`nn.sign`."""
    return nn.sign(x)


def floor(x: Tensor) -> Tensor:
    """`nn.floor`."""
    return nn.floor(x)


def ceil(x: Tensor) -> Tensor:
    """`nn.ceil`."""
    return nn.ceil(x)


def trunc(x: Tensor) -> Tensor:
    """`nn.trunc`."""
    return nn.trunc(x)


def round(x: Tensor) -> Tensor:
    """The nearest whole number; of two, the one further from zero, as the C library's `round`."""
    return elementwise(x, scalar.round_half_away, "round") if is_float(x.dtype) else x


def isnan(x: Tensor) -> Tensor:
    """`nn.isnan`."""
    return nn.isnan(x)


def isfinite(x: Tensor) -> Tensor:
    """`nn.isfinite`."""
    return nn.isfinite(x)


def isinf(x: Tensor) -> Tensor:
    """`nn.isinf`."""
    return nn.isinf(x)


def clip(x: Tensor, a_min: Number, a_max: Number) -> Tensor:
    """Every element moved into a_min..a_max; bounds are converted to the dtype of x."""
    low, high = (cast_scalar(x.dtype, as_expr(bound)) for bound in (a_min, a_max))
    return elementwise(x, lambda value: scalar.max(scalar.min(value, high), low), "compute")


@overload
def cast(x: Tensor, dtype: str) -> Tensor: ...
@overload
def cast(x: Expr | Number, dtype: str) -> Expr: ...
def cast(x: Tensor | Expr | Number, dtype: str) -> Tensor | Expr:
    """Every element converted to `dtype`; to bool, it is whether it is not 0. Of a scalar expression it is one."""
    return elementwise(x, lambda value: _converted(value, dtype), "T_cast") if isinstance(x, Tensor) else _converted(as_expr(x), dtype)


def _converted(value: Expr, dtype: str) -> Expr:
    return value != 0 if dtype == "bool" and value.dtype != "bool" else cast_scalar(dtype, value)
