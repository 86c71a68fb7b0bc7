"""Scalar mathematics and reductions, under the names that users of TVM's `te` know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Call, Const, Expr, Not, Operand, Reduce, Select, as_expr, binary, check_dtype, identity_of, is_float, unified

FLOAT_FUNCTIONS = ("exp", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "floor", "ceil", "round", "round_half_away", "trunc")
FUNCTIONS = (*FLOAT_FUNCTIONS, "fabs", "fmod", "pow")
"""All names of `Call`s."""


def _float_function(name: str) -> Callable[[Operand], Expr]:
    def function(x: Operand) -> Expr:
        value = as_expr(x, "float32" if not isinstance(x, Expr) else None)
        if not is_float(value.dtype):
            raise DeclarationError(f"asked for te.{name} of `{value}`, which has dtype {value.dtype}; convert it with .astype('float32')")
        return Call(name, (value,), value.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}(x)` of a floating-point scalar."
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


def power(x: Operand, y: Operand) -> Expr:
    """`x` to the power `y`."""
    return binary("pow", x, y)


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


div = truncdiv


def if_then_else(condition: Operand, then: Operand, otherwise: Operand) -> Expr:
    """`then` where `condition` holds, else `otherwise`; the other side is not evaluated, so this may guard a read."""
    test = as_expr(condition, "bool")
    if test.dtype != "bool":
        raise DeclarationError(f"asked for a choice on `{test}`, which has dtype {test.dtype}; the condition has to be bool: compare it first")
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


def _reduction(name: str, source: Expr, axis: Axis | Sequence[Axis]) -> Expr:
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if not axes:
        raise DeclarationError(f"asked for te.{name} over no axis; give axis=te.reduce_axis((0, n))")
    for one in axes:
        if not isinstance(one, Axis) or one.kind != "reduce":
            raise DeclarationError(f"asked for te.{name} over {one}, which is not a reduce axis; make one with te.reduce_axis((0, n))")
    names = [one.name for one in axes]
    if len(set(names)) != len(names):
        raise DeclarationError(f"asked for te.{name} over axes {names}, which repeat a name; name each te.reduce_axis differently")
    if source.dtype == "bool":
        raise DeclarationError(f"asked for te.{name} of the condition `{source}` over {', '.join(names)}; convert it with .astype('int32')")
    return Reduce(name, source, axes, source.dtype)


def sum(source: Operand, axis: Axis | Sequence[Axis]) -> Expr:
    """Sum of `source` over reduce axes."""
    return _reduction("sum", as_expr(source), axis)


def prod(source: Operand, axis: Axis | Sequence[Axis]) -> Expr:
    """Product of `source` over reduce axes."""
    return _reduction("prod", as_expr(source), axis)


def max(a: Operand, b: Operand | None = None, *, axis: Axis | Sequence[Axis] | None = None) -> Expr:
    """`te.max(x, axis=r)` reduces; `te.max(x, y)` is elementwise. A NaN on either side is kept, as PyTorch does."""
    return _extreme("max", a, b, axis)


def min(a: Operand, b: Operand | None = None, *, axis: Axis | Sequence[Axis] | None = None) -> Expr:
    """`te.min(x, axis=r)` reduces; `te.min(x, y)` is elementwise. A NaN on either side is kept, as PyTorch does."""
    return _extreme("min", a, b, axis)


def _extreme(name: str, a: Operand, b: Operand | None, axis: Axis | Sequence[Axis] | None) -> Expr:
    if (b is None) == (axis is None):
        raise DeclarationError(f"te.{name} takes either a second operand or axis=, not both and not neither")
    if axis is not None:
        return _reduction(name, as_expr(a), axis)
    assert b is not None
    return binary(name, a, b)


maximum, minimum = max, min


def min_value(dtype: str) -> Const:
    """The least value of `dtype` (minus infinity for floats)."""
    return Const(identity_of("max", check_dtype(dtype)), dtype)


def max_value(dtype: str) -> Const:
    """The greatest value of `dtype` (infinity for floats)."""
    return Const(identity_of("min", check_dtype(dtype)), dtype)
