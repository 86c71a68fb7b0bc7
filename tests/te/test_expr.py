"""Scalar expressions: what operators build, what is folded, and every mistake's sentence."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor import te
from ansor.errors import DeclarationError
from ansor.te.expr import DTYPES, Binary, Const, Expr, identity_of, substitute, transform, walk

X, J = te.Axis("i", 8), te.Axis("j", 4)
F = te.placeholder((8,), name="F")[X]
B = te.placeholder((8,), "int8", name="B")[X]
TEXT: Any = "x"
TENSOR: Any = te.placeholder((3,), name="X")


@pytest.mark.parametrize(("expr", "text"), [
    (X + 1, "(i + 1)"), (1 + X, "(1 + i)"), (X - J, "(i - j)"), (2 - X, "(2 - i)"), (X * 3, "(i * 3)"), (3 * X, "(3 * i)"),
    (X // 2, "(i // 2)"), (9 // X, "(9 // i)"), (X % 2, "(i % 2)"), (9 % X, "(9 % i)"), (-X, "(0 - i)"),
    (F / 2, "(F[i] / 2.0)"), (1 / F, "(1.0 / F[i])"), (F**2, "pow(F[i], 2.0)"), (2**F, "pow(2.0, F[i])"),
    (X < 3, "(i < 3)"), (X <= 3, "(i <= 3)"), (X > 3, "(i > 3)"), (X >= 3, "(i >= 3)"), (X == 3, "(i == 3)"), (X != 3, "(i != 3)"),
    ((X < 3) & (J > 1), "((i < 3) and (j > 1))"), ((X < 3) | (J > 1), "((i < 3) or (j > 1))"), (~(X < 3), "(not (i < 3))"),
    (te.max(X, J), "max(i, j)"), (te.min(F, 0), "min(F[i], 0.0)"), (te.truncdiv(X, 2), "truncdiv(i, 2)"), (te.truncmod(X, 2), "truncmod(i, 2)"),
    (te.if_then_else(X < 2, F, 0), "select((i < 2), F[i], 0.0)"), (te.if_then_else(X < 2, 1.0, 0), "select((i < 2), 1.0, 0.0)"),
    (F.astype("int32"), "int32(F[i])"), (te.cast("float32", X), "float32(i)"), (te.exp(F), "exp(F[i])"), (te.power(F, 0.5), "pow(F[i], 0.5)"),
    (te.abs(F), "fabs(F[i])"), (te.abs(B), "select((B[i] < 0), (0 - B[i]), B[i])"),
    (te.all(X < 3, J < 2, X < J), "(((i < 3) and (j < 2)) and (i < j))"), (te.any(X < 3, J < 2), "((i < 3) or (j < 2))"),
    (te.sum(F * F, axis=te.reduce_axis(8, "r")), "sum((F[i] * F[i]), axis=[r])"),
])
def test_operators_print_as_they_are_written(expr: Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize(("expr", "text"), [
    (X + 0, "i"), (0 + X, "i"), (X - 0, "i"), (X * 1, "i"), (1 * X, "i"), (X * 0, "0"), (X // 1, "i"), (X % 1, "0"),
    (te.const(7) // 2, "3"), (te.const(-7) // 2, "-4"), (te.const(-7) % 4, "1"), (te.const(3) < 4, "True"),
    (te.all(te.const(True), X < 3), "(i < 3)"), (te.any(te.const(True), X < 3), "True"), (te.if_then_else(te.const(False), F, F + 1), "(F[i] + 1.0)"),
    (te.cast("float32", te.const(3)), "3.0"),
])
def test_integers_and_conditions_are_folded(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_floating_point_arithmetic_is_left_as_written() -> None:
    assert str(F + 0) == "(F[i] + 0.0)"
    assert str(F * 0) == "(F[i] * 0.0)"
    assert str(te.const(1.0) + 2.0) == "(1.0 + 2.0)"


def test_folding_stops_at_the_ends_of_the_dtype() -> None:
    assert isinstance(te.const(100, "int8") + te.const(100, "int8"), Binary)
    assert isinstance(te.const(3, "uint8") - te.const(5, "uint8"), Binary)


@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_folded_division_is_pythons(a: int, b: int) -> None:
    quotient, remainder = te.const(a) // b, te.const(a) % b
    assert isinstance(quotient, Const) and isinstance(remainder, Const)
    assert (quotient.value, remainder.value) == divmod(a, b)


def test_numbers_take_the_dtype_of_the_other_side() -> None:
    assert (F + 1).dtype == "float32"
    assert (B + 1).dtype == "int8"
    assert (X < 1).dtype == "bool"
    assert te.exp(1).dtype == "float32"
    assert te.const(1).dtype == "int32" and te.const(1.0).dtype == "float32" and te.const(True).dtype == "bool"


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_reductions_start_from_the_neutral_element(dtype: str) -> None:
    kind = np.dtype(dtype)
    limits = (-math.inf, math.inf) if kind.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert (te.min_value(dtype).value, te.max_value(dtype).value) == limits
    assert (identity_of("sum", dtype), identity_of("prod", dtype)) == (0, 1)
    assert (identity_of("max", dtype), identity_of("min", dtype)) == limits


def test_transform_replaces_and_keeps_what_did_not_change() -> None:
    expr = te.max(X + 1, J)
    assert transform(expr, lambda node: None) is expr
    assert str(substitute(expr, {X: J * 2})) == "max(((j * 2) + 1), j)"
    assert [str(node) for node in walk(X + 1)] == ["(i + 1)", "i", "1"]


@pytest.mark.parametrize(("mistake", "sentence"), [
    (lambda: F + X, "asked for add of float32 `F[i]` and int32 `i`; both sides need one dtype"),
    (lambda: X + 0.5, "asked to combine the float 0.5 with a value of dtype int32"),
    (lambda: X / 2, "asked for `i / 2` on dtype int32; use te.floordiv"),
    (lambda: F // 2, "asked for floordiv of `F[i]` and `2.0` on dtype float32; it is defined for integers"),
    (lambda: X // 0, "asked for floordiv of `i` by zero"),
    (lambda: X % 0, "asked for floormod of `i` by zero"),
    (lambda: X**2, "asked for pow of dtype int32 `i`"),
    (lambda: te.exp(X), "asked for te.exp of `i`, which has dtype int32; convert it with .astype('float32')"),
    (lambda: X & J, "asked for logical and of `i` and `j`, which have dtype int32; compare them first"),
    (lambda: (X < 3) + 1, "asked for add of the conditions `(i < 3)` and `True`; use te.all"),
    (lambda: bool(X < 3), "asked for the truth of the expression `(i < 3)`, which has no value while declaring"),
    (lambda: F + TEXT, "asked for arithmetic with a str ('x')"),
    (lambda: F + TENSOR, "asked for arithmetic with a Tensor (Tensor(X, (3,), float32)); use a number, or read an element"),
    (lambda: F == None, "asked for arithmetic with a NoneType"),  # noqa: E711
    (lambda: B + 200, "asked for the int8 constant 200, which is outside -128..127"),
    (lambda: te.const(1.5, "int32"), "asked for the int32 constant 1.5, which is not an integer"),
    (lambda: te.const(TEXT), "te.const takes a Python number, found str"),
    (lambda: te.cast("half", X), "asked for dtype 'half', which is not one of float32, float64"),
    (lambda: te.if_then_else(X, F, 0), "asked for a choice on `i`, which has dtype int32; the condition has to be bool"),
    (lambda: te.if_then_else(X < 1, F, B), "asked to choose between float32 `F[i]` and int8 `B[i]`; both need one dtype"),
    (lambda: te.all(), "asked for te.all or te.any of no condition"),
    (lambda: te.sum(F, axis=[]), "asked for te.sum over no axis"),
    (lambda: te.sum(F, axis=X), "asked for te.sum over i, which is not a reduce axis; make one with te.reduce_axis((0, n))"),
    (lambda: te.sum(F, axis=[te.reduce_axis(2, "r"), te.reduce_axis(3, "r")]), "asked for te.sum over axes ['r', 'r'], which repeat a name"),
    (lambda: te.sum(X < 3, axis=te.reduce_axis(2, "r")), "asked for te.sum of the condition `(i < 3)` over r; convert it with .astype('int32')"),
    (lambda: te.max(F), "te.max takes either a second operand or axis=, not both and not neither"),
    (lambda: te.max(F, 0, axis=te.reduce_axis(2)), "te.max takes either a second operand or axis=, not both and not neither"),
])
def test_mistakes_give_a_sentence(mistake: object, sentence: str) -> None:
    assert callable(mistake)
    with pytest.raises(DeclarationError) as caught:
        mistake()
    assert sentence in str(caught.value)
