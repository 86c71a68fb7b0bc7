"""`tvm.topi.broadcast`: binary operators with NumPy's broadcasting, and unary operators on conditions and bits.

On two scalar expressions or numbers, the result is a scalar expression. Operands of different dtypes are promoted like scalar expressions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Protocol, overload

from ansor.compat.tvm.topi.fallback import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.te import scalar
from ansor.te.expr import Expr, Number, as_expr, binary
from ansor.te.nn.comparison import truth
from ansor.te.nn.elementwise import combine
from ansor.te.tensor import Tensor

Value = Tensor | Expr | Number


class BinaryOperator(Protocol):
    """A binary operator."""

    __name__: str

    @overload
    def __call__(self, lhs: Tensor, rhs: Value) -> Tensor: ...
    @overload
    def __call__(self, lhs: Value, rhs: Tensor) -> Tensor: ...
    @overload
    def __call__(self, lhs: Expr | Number, rhs: Expr | Number) -> Expr: ...


def of_two(name: str, function: Callable[[Expr, Expr], Expr], meaning: str) -> BinaryOperator:
    """The operator that applies `function` elementwise."""

    def applied(lhs: Value, rhs: Value) -> Tensor | Expr:
        if isinstance(lhs, Tensor) or isinstance(rhs, Tensor):
            return combine(function, f"T_{name}", lhs, rhs)
        return function(as_expr(lhs), as_expr(rhs))

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = meaning
    return applied  # type: ignore[return-value]  # the operands determine which overload applies


add = of_two("add", operator.add, "lhs + rhs.")
subtract = of_two("subtract", operator.sub, "lhs - rhs.")
multiply = of_two("multiply", operator.mul, "lhs * rhs.")
divide = of_two("divide", scalar.div, "lhs / rhs; integer results are rounded towards zero.")
floor_divide = of_two("floor_divide", scalar.floordiv, "lhs / rhs rounded towards minus infinity.")
mod = of_two("mod", scalar.truncmod, "The remainder with the sign of lhs.")
floor_mod = of_two("floor_mod", scalar.floormod, "The remainder with the sign of rhs.")
maximum = of_two("maximum", scalar.max, "The greater of both.")
minimum = of_two("minimum", scalar.min, "The lesser of both.")
power = of_two("power", scalar.power, "lhs to the power rhs, for floats.")
left_shift = of_two("left_shift", operator.lshift, "lhs << rhs.")
right_shift = of_two("right_shift", operator.rshift, "lhs >> rhs; keeps the sign.")
greater = of_two("greater", operator.gt, "lhs > rhs: bool.")
less = of_two("less", operator.lt, "lhs < rhs: bool.")
equal = of_two("equal", lambda a, b: binary("eq", a, b), "lhs == rhs: bool.")
not_equal = of_two("not_equal", lambda a, b: binary("ne", a, b), "lhs != rhs: bool.")
greater_equal = of_two("greater_equal", operator.ge, "lhs >= rhs: bool.")
less_equal = of_two("less_equal", operator.le, "lhs <= rhs: bool.")
logical_and = of_two("logical_and", lambda a, b: scalar.all(truth(a), truth(b)), "Whether both are true.")
logical_or = of_two("logical_or", lambda a, b: scalar.any(truth(a), truth(b)), "Whether at least one is true.")
logical_xor = of_two("logical_xor", lambda a, b: truth(a) != truth(b), "Whether exactly one is true.")
bitwise_and = of_two("bitwise_and", operator.and_, "lhs & rhs.")
bitwise_or = of_two("bitwise_or", operator.or_, "lhs | rhs.")
bitwise_xor = of_two("bitwise_xor", operator.xor, "lhs ^ rhs.")
