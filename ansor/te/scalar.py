"""Scalar mathematics and reductions, under the names that users of TVM's `te` know."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce as fold

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Call, Const, Expr, Not, Operand, Select, as_expr, binary, cast, check_dtype, identity_of, is_float, unified
from ansor.te.reducers import Axes, reduction

ROUNDING = ("floor", "ceil", "round", "round_half_away", "trunc")
FLOAT_FUNCTIONS = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", *ROUNDING,
)  # fmt: skip
PAIR_FUNCTIONS = ("atan2", "fmod", "hypot", "copysign", "nextafter")
FUNCTIONS = (*FLOAT_FUNCTIONS, *PAIR_FUNCTIONS, "fabs", "pow")
"""All function names of `Call`."""


def _float_function(name: str) -> Callable[[Operand], Expr]:
    def function(x: Operand) -> Expr:
        value = as_expr(x, "float32" if not isinstance(x, Expr) else None)
        if not is_float(value.dtype):
            if name in ROUNDING:
                return value
            value = cast("float32", value)
        return Call(name, (value,), value.dtype)

    function.__name__ = function.__qualname__ = name
    whole = "an integer stays the same" if name in ROUNDING else "an integer is converted to float32"
    function.__doc__ = f"`{name}(x)` of a floating-point scalar; {whole}."
    return function


def _pair_function(name: str) -> Callable[[Operand, Operand], Expr]:
    def function(x: Operand, y: Operand) -> Expr:
        a, b = unified(name, x, y)
        dtype = a.dtype if is_float(a.dtype) else "float32"
        return Call(name, (cast(dtype, a), cast(dtype, b)), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}(x, y)` of floating-point scalars; integers are converted to float32."
    return function


exp = _float_function("exp")
log = _float_function("log")
log2 = _float_function("log2")
sqrt = _float_function("sqrt")
rsqrt = _float_function("rsqrt")
tanh = _float_function("tanh")
sigmoid = _float_function("sigmoid")
erf = _float_function("erf")
sin = _float_function("sin")
cos = _float_function("cos")
floor = _float_function("floor")
ceil = _float_function("ceil")
round = nearbyint = _float_function("round")
round.__doc__ = "To the nearest integer, halves to the even one: as NumPy and PyTorch do."
round_half_away = _float_function("round_half_away")
round_half_away.__doc__ = "To the nearest integer, halves away from zero: as C's `round` does, and TVM's `te.round`."
trunc = _float_function("trunc")
exp2, exp10 = _float_function("exp2"), _float_function("exp10")
log10, log1p = _float_function("log10"), _float_function("log1p")
tan, asin, acos, atan = _float_function("tan"), _float_function("asin"), _float_function("acos"), _float_function("atan")
sinh, cosh = _float_function("sinh"), _float_function("cosh")
asinh, acosh, atanh = _float_function("asinh"), _float_function("acosh"), _float_function("atanh")
atan2, hypot, copysign, nextafter = _pair_function("atan2"), _pair_function("hypot"), _pair_function("copysign"), _pair_function("nextafter")


def fmod(x: Operand, y: Operand) -> Expr:
    """The remainder of division rounded towards zero, with the sign of x; `truncmod` for integers."""
    return binary("truncmod", x, y)


def ldexp(x: Operand, n: Operand) -> Expr:
    """x times 2 to the power n."""
    a, b = unified("ldexp", x, n)
    dtype = a.dtype if is_float(a.dtype) else "float32"
    return binary("mul", cast(dtype, a), exp2(cast(dtype, b)))


def isnan(x: Operand) -> Expr:
    """True where x is not a number."""
    value = as_expr(x)
    return binary("ne", value, value) if is_float(value.dtype) else Const(False, "bool")


def isinf(x: Operand) -> Expr:
    """True where x is infinite."""
    value = as_expr(x)
    return binary("eq", abs(value), infinity(value.dtype)) if is_float(value.dtype) else Const(False, "bool")


def isfinite(x: Operand) -> Expr:
    """True where x is neither infinite nor NaN."""
    value = as_expr(x)
    return binary("lt", abs(value), infinity(value.dtype)) if is_float(value.dtype) else Const(True, "bool")


def infinity(dtype: str = "float32") -> Const:
    """Positive infinity of a float dtype."""
    if not is_float(check_dtype(dtype)):
        raise DeclarationError(f"asked for te.infinity of dtype {dtype}, which has none; use te.max_value")
    return Const(identity_of("min", dtype), dtype)


def popcount(x: Operand) -> Expr:
    """The number of 1 bits of an integer, in its dtype; computed bit by bit."""
    value, count = _bits("popcount", x)
    return fold(operator.add, (binary("shr", value, bit) & 1 for bit in range(count)))


def clz(x: Operand) -> Expr:
    """The number of 0 bits above the highest 1 of an integer, as int32; computed bit by bit. All bits for 0, none for a negative number."""
    value, count = _bits("clz", x)
    return fold(operator.add, (cast("int32", binary("eq", binary("shr", value, bit), 0)) for bit in range(count)))


def _bits(name: str, x: Operand) -> tuple[Expr, int]:
    """An integer and its number of bits."""
    value = as_expr(x)
    if is_float(value.dtype) or value.dtype == "bool":
        raise DeclarationError(f"asked for te.{name} of `{value}`, which has dtype {value.dtype}; bitwise operators need integers")
    return value, {"int8": 8, "uint8": 8, "int16": 16, "int32": 32}.get(value.dtype, 64)


def power(x: Operand, y: Operand) -> Expr:
    """`x` to the power `y`."""
    return binary("pow", x, y)


def small_power(call: Call) -> int:
    """The exponent 2, 3 or 4 of a power that one or two products compute as exactly as the function does; else 0."""
    exponent = call.arguments[1] if call.name == "pow" and call.dtype in ("float32", "float64") else None
    return int(exponent.value) if isinstance(exponent, Const) and exponent.value in (2, 3, 4) else 0


def abs(x: Operand) -> Expr:
    """Absolute value, of any numeric dtype."""
    value = as_expr(x)
    if is_float(value.dtype):
        return Call("fabs", (value,), value.dtype)
    return if_then_else(value < 0, -value, value)


def floordiv(a: Operand, b: Operand) -> Expr:
    """Integer division rounded towards minus infinity."""
    return binary("floordiv", a, b)


def floormod(a: Operand, b: Operand) -> Expr:
    """Remainder of `floordiv`."""
    return binary("floormod", a, b)


indexdiv, indexmod = floordiv, floormod


def truncdiv(a: Operand, b: Operand) -> Expr:
    """Integer division rounded towards zero, as C's `/`."""
    return binary("truncdiv", a, b)


def truncmod(a: Operand, b: Operand) -> Expr:
    """Remainder of `truncdiv`, as C's `%`."""
    return binary("truncmod", a, b)


def div(a: Operand, b: Operand) -> Expr:
    """Division: `/` for floats, rounded towards zero for integers."""
    x, y = unified("div", a, b)
    return binary("div" if is_float(x.dtype) else "truncdiv", x, y)


def if_then_else(condition: Operand, then: Operand, otherwise: Operand) -> Expr:
    """`then` where `condition` holds, else `otherwise`. Only the chosen side is evaluated, so this may guard a read."""
    test = as_expr(condition, "bool")
    if test.dtype != "bool":
        raise DeclarationError(f"asked for a selection on `{test}`, which has dtype {test.dtype}; the condition has to be bool: compare it first")
    a, b = unified("choice", then, otherwise)
    if isinstance(test, Const):
        return a if test.value else b
    return Select(test, a, b, a.dtype)


select = if_then_else


def all(*conditions: Operand) -> Expr:
    """True where every condition holds."""
    return _combined("and", conditions)


def any(*conditions: Operand) -> Expr:
    """True where some condition holds."""
    return _combined("or", conditions)


def _combined(op: str, conditions: Sequence[Operand]) -> Expr:
    if not conditions:
        raise DeclarationError("asked for te.all or te.any of no condition; give at least one")
    return fold(lambda a, b: binary(op, a, b), [as_expr(c, "bool") for c in conditions])


def logical_not(condition: Operand) -> Expr:
    """True where `condition` does not hold."""
    return Not(as_expr(condition, "bool"))


def sum(
    expr: Operand, b: Axes | Operand | None = None, where: Operand | None = None, init: Operand | None = None, *, axis: Axes | None = None
) -> Expr:
    """Sum of `expr` over reduce axes, where a condition holds, starting from `init`. `te.sum(x, y)` is the sum of two values."""
    return _either("sum", expr, b, axis, where, init)


def prod(
    expr: Operand, b: Axes | Operand | None = None, where: Operand | None = None, init: Operand | None = None, *, axis: Axes | None = None
) -> Expr:
    """Product of `expr` over reduce axes, where a condition holds, starting from `init`. `te.prod(x, y)` is the product of two values."""
    return _either("prod", expr, b, axis, where, init)


def max(a: Operand, b: Axes | Operand | None = None, where: Operand | None = None, init: Operand | None = None, *, axis: Axes | None = None) -> Expr:
    """`te.max(x, axis=r)` and `te.max(x, r)` reduce like `te.sum`; `te.max(x, y)` is elementwise. A NaN on either side is kept, as in PyTorch."""
    return _either("max", a, b, axis, where, init)


def min(a: Operand, b: Axes | Operand | None = None, where: Operand | None = None, init: Operand | None = None, *, axis: Axes | None = None) -> Expr:
    """`te.min(x, axis=r)` and `te.min(x, r)` reduce like `te.sum`; `te.min(x, y)` is elementwise. A NaN on either side is kept, as in PyTorch."""
    return _either("min", a, b, axis, where, init)


def _either(name: str, a: Operand, b: Axes | Operand | None, axis: Axes | None, where: Operand | None, init: Operand | None) -> Expr:
    if b is not None and axis is not None:
        raise DeclarationError(f"asked for te.{name} of `{a}` over an axis and with the second value `{b}`; give one of them")
    return reduction(name, as_expr(a), axis, where, init) if axis is not None else _reduced(name, a, b, where, init)


def _reduced(name: str, expr: Operand, second: Axes | Operand | None, where: Operand | None, init: Operand | None) -> Expr:
    """A reduction over axes, or the operation itself on two or more values."""
    if second is None:
        raise DeclarationError(f"asked for te.{name} of `{expr}` over no axis; give axis=te.reduce_axis((0, n)), or a second value")
    if isinstance(second, Sequence) or (isinstance(second, Axis) and (second.kind == "reduce" or name in ("sum", "prod"))):
        return reduction(name, as_expr(expr), second, where, init)
    op = {"sum": "add", "prod": "mul"}.get(name, name)
    return fold(lambda x, y: binary(op, x, y), [one for one in (second, where, init) if one is not None], as_expr(expr))


maximum, minimum = max, min


def min_value(dtype: str) -> Const:
    """The least value of `dtype` (minus infinity for floats)."""
    return Const(identity_of("max", check_dtype(dtype)), dtype)


def max_value(dtype: str) -> Const:
    """The greatest value of `dtype` (infinity for floats)."""
    return Const(identity_of("min", check_dtype(dtype)), dtype)
