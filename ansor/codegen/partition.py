"""Avoids tests per element in paddings: finds the range of the innermost loop in which a condition holds."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.values import computable, depends
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import IndexValue
from ansor.ir.simplify import comparison_of, conjuncts
from ansor.te.expr import Expr, Select


@dataclass(frozen=True, eq=False)
class Partition:
    """The value is `then` for max(lows) <= variable < min(highs) if all `conditions` (free of the variable) hold, `otherwise` elsewhere."""

    then: Expr
    otherwise: Expr
    lows: tuple[Linear, ...]
    highs: tuple[Linear, ...]
    conditions: tuple[Expr, ...]


def partition(value: Expr, var: Var) -> Partition | None:
    """The ranges of a choice whose condition is a conjunction of comparisons with `var`; None for anything else."""
    if not isinstance(value, Select) or not computable(value.condition):
        return None  # bounds are computed ahead, even if the first half of a condition guards them
    lows: list[Linear] = []
    highs: list[Linear] = []
    conditions: list[Expr] = []
    for test in conjuncts(value.condition):
        if not depends(test, var):
            conditions.append(test)
            continue
        found = _bound(test, var)
        if found is None:
            return None
        (lows if found[0] == "low" else highs).append(found[1])
    if not lows and not highs:
        return None
    return Partition(value.then, value.otherwise, tuple(lows), tuple(highs), tuple(conditions))


def _bound(test: Expr, var: Var) -> tuple[str, Linear] | None:
    """`low`: the first value for which the test holds; `high`: the first for which it no longer does."""
    compared = comparison_of(test)
    if compared is None:
        return None
    op, left, right = compared
    # test  <=>  difference (op) 0, where difference = var + rest
    difference = left - right
    coefficient = int(difference.coefficient(var))
    rest = Linear(tuple((atom, c) for atom, c in difference.terms if atom is not var), difference.const)
    if any(depends(IndexValue(Linear(((atom, 1),))), var) for atom, _ in rest.terms):
        return None
    if coefficient not in (1, -1):
        return None
    if coefficient == -1:
        rest = -rest
        op = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[op]
    bound = -rest
    return {"ge": ("low", bound), "gt": ("low", bound + 1), "lt": ("high", bound), "le": ("high", bound + 1)}[op]
