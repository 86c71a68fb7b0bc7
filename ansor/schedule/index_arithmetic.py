"""Integer expressions of declarations as sums of loop variables: which can be converted, what they become, and when two are the same."""

from __future__ import annotations

from ansor.ir.columns import Int
from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Remainder, Var, of
from ansor.te.expr import Axis, Binary, Cast, Const, Expr
from ansor.te.fold import postorder
from ansor.te.interval import arithmetic_form


def is_index_arithmetic(expr: Expr) -> bool:
    """True for arithmetic that can be done on sums of loop variables. Narrow integers are excluded: they wrap, such sums do not."""
    if isinstance(expr, Cast):
        return expr.value.dtype in ("int32", "int64") and expr.dtype in ("int32", "int64")
    if not isinstance(expr, Binary) or expr.dtype not in ("int32", "int64"):
        return False
    return arithmetic_form(expr).op in ("add", "sub", "mul", "floordiv", "floormod")


def is_plain(expr: Expr, known: dict[int, bool]) -> bool:
    """True for arithmetic of axes and numbers only. known: earlier answers, by id."""
    if id(expr) in known:
        return known[id(expr)]
    for node in postorder(expr, lambda node: node.children if id(node) not in known and is_index_arithmetic(node) else ()):
        if id(node) not in known:
            inner = is_index_arithmetic(node) and all(known[id(child)] for child in node.children)
            known[id(node)] = inner or isinstance(node, Const | Axis)
    return known[id(expr)]


def affine(expr: Expr, left: Linear, right: Linear) -> Linear | None:
    """`left op right` as a sum of loop variables; None if it is not one."""
    assert isinstance(expr, Binary)
    plain = arithmetic_form(expr)
    if plain is not expr:
        assert isinstance(plain.right, Const)
        expr, right = plain, Linear((), int(plain.right.value))
    if expr.op == "add":
        return left + right
    if expr.op == "sub":
        return left - right
    if expr.op == "mul":
        return left * right.const if not right.terms else right * left.const if not left.terms else None
    if right.terms or not isinstance(expr.right, Const) or int(expr.right.value) <= 0:
        return None
    return of((Quotient if expr.op == "floordiv" else Remainder)(left, right.const))


def signature(index: Linear) -> tuple[object, ...]:
    """A key that is the same for indices of the same form."""
    return (*((_atom_signature(atom), _number_signature(coefficient)) for atom, coefficient in index.terms), _number_signature(index.const))


def _atom_signature(atom: Atom) -> object:
    if isinstance(atom, Var | Opaque):
        return atom
    return type(atom), signature(atom.value), _number_signature(atom.divisor)


def _number_signature(number: Int) -> object:
    """Arrays and columns are told apart by identity."""
    return number if isinstance(number, int) else ("at", id(number))
