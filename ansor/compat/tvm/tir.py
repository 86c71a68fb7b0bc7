"""`tvm.tir`: scalar expressions, as in `te`. It has no statements, functions or passes: a scheduled program is plain loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.compat.auto_scheduler.tir_text import called
from ansor.compat.tvm.language import size_var as SizeVar  # noqa: F401
from ansor.compat.tvm.language import var as Var  # noqa: F401
from ansor.compat.tvm.missing import of_tir as __getattr__  # noqa: F401  # missing names raise
from ansor.compat.tvm.te import *  # noqa: F403  # all of its functions
from ansor.te import Axis, Expr
from ansor.te.expr import Call as Call
from ansor.te.expr import Const as Const
from ansor.te.expr import Number, Operand, binary, cast, const
from ansor.te.scalar import if_then_else, logical_not

PrimExpr, IterVar = Expr, Axis


@dataclass(frozen=True)
class Op:
    """The operator of a call."""

    name: str


Call.op = property(lambda self: Op(called(self)))  # type: ignore[attr-defined]  # for scripts that read tensor.op.body[0].op.name


def Select(condition: Operand, true_value: Operand, false_value: Operand) -> Expr:
    """`te.if_then_else`."""
    return if_then_else(condition, true_value, false_value)


def IntImm(dtype: str, value: Number) -> Const:
    """A constant."""
    return const(value, dtype)


Cast, FloatImm = cast, IntImm


def _node(op: str) -> Callable[[Operand, Operand], Expr]:
    def function(a: Operand, b: Operand) -> Expr:
        return binary(op, a, b)

    function.__doc__ = f"The operation `{op}` on two operands."
    return function


Add, Sub, Mul, Div, Mod = _node("add"), _node("sub"), _node("mul"), _node("div"), _node("truncmod")
FloorDiv, FloorMod, Min, Max = _node("floordiv"), _node("floormod"), _node("min"), _node("max")
EQ, NE, LT, LE, GT, GE = _node("eq"), _node("ne"), _node("lt"), _node("le"), _node("gt"), _node("ge")
And, Or, Not = _node("and"), _node("or"), logical_not
