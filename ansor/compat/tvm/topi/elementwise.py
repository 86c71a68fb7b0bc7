"""`tvm.topi`'s functions of every element. Those that are defined for floats take integers and conditions as float32, as scalar expressions do."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from ansor.te import nn, scalar
from ansor.te.expr import Expr, Number, as_expr
from ansor.te.expr import cast as cast_scalar
from ansor.te.tensor import Tensor, elementwise

Unary = Callable[[Tensor], Tensor]


def of_one(function: Callable[[Tensor], Tensor]) -> Unary:
    """An operator of ours without the name of its result."""

    def applied(x: Tensor) -> Tensor:
        return function(x)

    applied.__name__ = applied.__qualname__ = function.__name__
    applied.__doc__ = f"`nn.{function.__name__}`."
    return applied


exp = of_one(nn.exp)
erf = of_one(nn.erf)
tan = of_one(nn.tan)
tanh = of_one(nn.tanh)
cos = of_one(nn.cos)
cosh = of_one(nn.cosh)
sin = of_one(nn.sin)
sinh = of_one(nn.sinh)
asin = of_one(nn.asin)
acos = of_one(nn.acos)
atan = of_one(nn.atan)
asinh = of_one(nn.asinh)
acosh = of_one(nn.acosh)
atanh = of_one(nn.atanh)
log = of_one(nn.log)
log2 = of_one(nn.log2)
log10 = of_one(nn.log10)
sqrt = of_one(nn.sqrt)
rsqrt = of_one(nn.rsqrt)
sigmoid = of_one(nn.sigmoid)
negative = of_one(nn.negative)
abs = of_one(nn.abs)
sign = of_one(nn.sign)
floor = of_one(nn.floor)
ceil = of_one(nn.ceil)
trunc = of_one(nn.trunc)
isnan = of_one(nn.isnan)
isfinite = of_one(nn.isfinite)
isinf = of_one(nn.isinf)
fast_exp, fast_tanh, fast_erf = exp, tanh, erf


def identity(x: Tensor) -> Tensor:
    """A copy."""
    return elementwise(x, lambda value: value, "identity")


def round(x: Tensor) -> Tensor:
    """The nearest whole number; of two, the one further from zero, as the C library's `round`."""
    return elementwise(x, scalar.round_half_away, "round")


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
