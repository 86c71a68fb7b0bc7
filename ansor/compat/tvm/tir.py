"""`tvm.tir`: scalar expressions, which are those of `te`. Of statements, functions and passes there is nothing: a scheduled program is plain loops."""

from __future__ import annotations

from typing import NoReturn

from ansor.compat.tvm.missing import missing
from ansor.compat.tvm.te import *  # noqa: F403  # all of its functions
from ansor.te import Axis, Expr
from ansor.te.expr import Cast as Cast
from ansor.te.expr import Const as Const
from ansor.te.expr import Operand
from ansor.te.scalar import if_then_else

PrimExpr, IterVar = Expr, Axis


def Select(condition: Operand, true_value: Operand, false_value: Operand) -> Expr:
    """`te.if_then_else`."""
    return if_then_else(condition, true_value, false_value)


def __getattr__(name: str) -> NoReturn:
    """What is not here raises."""
    raise missing("tvm.tir", name)
