"""Scalar expressions: what operators build, what is folded, and every mistake's sentence."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor import te
from ansor.errors import DeclarationError
from ansor.te.expr import DTYPES, Binary, Const, Expr, identity_of, is_float, substitute
from ansor.te.fold import transform, walk

X, J = te.Axis("i", 8), te.Axis("j", 4)
F = te.placeholder((8,), name="F")[X]
B = te.placeholder((8,), "int8", name="B")[X]
TEXT: Any = "x"
WRONG: Any = 1
TENSOR: Any = te.placeholder((3,), name="X")
MATRIX: Any = te.placeholder((8, 4), name="M")
U, S, L, D = (te.placeholder((8,), dtype, name=dtype)[X] for dtype in ("uint8", "int16", "int64", "float64"))


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
    (X << 2, "(i << 2)"), (2 << X, "(2 << i)"), (X >> 2, "(i >> 2)"), (X & 7, "(i & 7)"), (7 & X, "(7 & i)"), (X | J, "(i | j)"), (X ^ J, "(i ^ j)"),
    (~X, "(i ^ -1)"), (~U, "(uint8[i] ^ 255)"), ((X < 3) ^ (J < 3), "((i < 3) != (j < 3))"), ((X < 3) & 1, "(i < 3)"), (MATRIX[X][J], "M[i, j]"),
    (F // 2, "floor((F[i] / 2.0))"), (te.truncmod(F, 2), "fmod(F[i], 2.0)"),
])
def test_operators_print_as_they_are_written(expr: Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize(("expr", "text"), [
    (X + 0, "i"), (0 + X, "i"), (X - 0, "i"), (X * 1, "i"), (1 * X, "i"), (X * 0, "0"), (X // 1, "i"), (X % 1, "0"),
    (te.const(7) // 2, "3"), (te.const(-7) // 2, "-4"), (te.const(-7) % 4, "1"), (te.const(3) < 4, "True"),
    (te.all(te.const(True), X < 3), "(i < 3)"), (te.any(te.const(True), X < 3), "True"), (te.if_then_else(te.const(False), F, F + 1), "(F[i] + 1.0)"),
    (te.cast("float32", te.const(3)), "3.0"), (te.const(-1).astype("uint8"), "255"), (te.const(200).astype("int8"), "-56"),
    (te.const(6) & 3, "2"), (te.const(6) | 3, "7"), (te.const(6) ^ 3, "5"), (~te.const(6), "-7"), (te.const(3) << 2, "12"), (te.const(-3) >> 1, "-2"),
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


@pytest.mark.parametrize(("expr", "text"), [
    (F + X, "(F[i] + float32(i))"), (X + F, "(float32(i) + F[i])"), (X + 0.5, "(float32(i) + 0.5)"), (0.5 * B, "(0.5 * float32(B[i]))"),
    (F * D, "(float64(F[i]) * float64[i])"), (L + F, "(float32(int64[i]) + F[i])"), (B + S, "(int16(B[i]) + int16[i])"), (L - X, "(int64[i] - int64(i))"),
    (B * U, "(uint8(B[i]) * uint8[i])"), (U + S, "(int16(uint8[i]) + int16[i])"), ((X < 3) + 1, "(int32((i < 3)) + 1)"),
    ((X < 3) * F, "(float32((i < 3)) * F[i])"),
    (te.if_then_else(X < 1, F, B), "select((i < 1), F[i], float32(B[i]))"), (te.if_then_else(X < 1, X, 0.5), "select((i < 1), float32(i), 0.5)"),
    (te.max(X, 0.5), "max(float32(i), 0.5)"), (F < X, "(F[i] < float32(i))"), (np.float32(2) * F, "(2.0 * F[i])"), (F + np.int64(2), "(F[i] + 2.0)"),
])
def test_two_dtypes_are_brought_to_one(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_loops_may_leave_int32_beside_a_number() -> None:
    assert str(X + 2**31) == "(int64(i) + 2147483648)" and (X + 2**31).dtype == "int64"


def test_numbers_take_the_dtype_of_the_other_side() -> None:
    assert (F + 1).dtype == "float32"
    assert (B + 1).dtype == "int8"
    assert (X < 1).dtype == "bool"
    assert te.exp(1).dtype == "float32"
    assert te.const(1).dtype == "int32" and te.const(1.0).dtype == "float32" and te.const(True).dtype == "bool"


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_reductions_start_from_the_neutral_element(dtype: str) -> None:
    limits = (-math.inf, math.inf) if is_float(dtype) else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert (te.min_value(dtype).value, te.max_value(dtype).value) == limits
    assert (identity_of("sum", dtype), identity_of("prod", dtype)) == (0, 1)
    assert (identity_of("max", dtype), identity_of("min", dtype)) == limits


def test_transform_replaces_and_keeps_what_did_not_change() -> None:
    expr = te.max(X + 1, J)
    assert transform(expr, lambda node: None) is expr
    assert str(substitute(expr, {X: J * 2})) == "max(((j * 2) + 1), j)"
    assert [str(node) for node in walk(X + 1)] == ["(i + 1)", "i", "1"]


@pytest.mark.parametrize(("mistake", "sentence"), [
    (lambda: X / 2, "asked for `i / 2` on dtype int32; use te.floordiv"),
    (lambda: F & 2, "asked for bitand of `F[i]` and `2.0` on dtype float32; bitwise operators need integers: convert with .astype('int32')"),
    (lambda: ~F, "asked for bitxor of `F[i]` and `-1.0` on dtype float32; bitwise operators need integers"),
    (lambda: B << 8, "asked to shift `B[i]` of dtype int8 by 8 bits; it has 8: shift by 0..7"),
    (lambda: B >> -1, "asked to shift `B[i]` of dtype int8 by -1 bits"),
    (lambda: MATRIX[X] + 1, "asked for add of M[i], which has 1 index; tensor M of shape (8, 4) has 2 dimensions: give one index for each"),
    (lambda: te.exp(MATRIX[X]), "asked for the value of M[i], which has 1 index"),
    (lambda: X // 0, "asked for floordiv of `i` by zero"),
    (lambda: X % 0, "asked for floormod of `i` by zero"),
    (lambda: X**2, "asked for pow of dtype int32 `i`"),
    (lambda: te.all(X, J), "asked for logical and of `i` and `j`, which have dtype int32; compare them first"),
    (lambda: (X < 3) + (J < 3), "asked for add of the conditions `(i < 3)` and `(j < 3)`; use te.all"),
    (lambda: bool(X < 3), "asked for the truth of the expression `(i < 3)`, which has no value while declaring"),
    (lambda: F + TEXT, "asked for arithmetic with a str ('x')"),
    (lambda: F == TENSOR, "asked for arithmetic with a Tensor (Tensor(X, (3,), float32)); use a number, or read an element"),
    (lambda: te.exp(TENSOR), "asked for arithmetic with a Tensor (Tensor(X, (3,), float32)); use a number, or read an element"),
    (lambda: TENSOR + TEXT, "asked for arithmetic with a str ('x')"),
    (lambda: F == None, "asked for arithmetic with a NoneType"),  # noqa: E711
    (lambda: B + 200, "asked for the int8 constant 200, which is outside -128..127"),
    (lambda: te.const(1.5, "int32"), "asked for the int32 constant 1.5, which is not an integer"),
    (lambda: te.const(TEXT), "te.const takes a Python number, found str"),
    (lambda: te.cast("half", X), "asked for dtype 'half', which is not one of float16, float32, float64"),
    (lambda: te.if_then_else(X, F, 0), "asked for a selection on `i`, which has dtype int32; the condition has to be bool"),
    (lambda: te.all(), "asked for te.all or te.any of no condition"),
    (lambda: te.sum(F, axis=[]), "asked for te.sum over no axis"),
    (lambda: te.sum(F, axis=X), "asked for te.sum over i, which is not a reduce axis; make one with te.reduce_axis((0, n))"),
    (lambda: te.sum(X < 3, axis=te.reduce_axis(2, "r")), "asked for te.sum of the condition `(i < 3)` over r; convert it with .astype('int32')"),
    (lambda: te.max(F), "asked for te.max of `"),
    (lambda: te.max(F, 0, axis=te.reduce_axis(2)), "over an axis and with the second value `0`; give one of them"),
    (lambda: te.sum(F, axis=WRONG), "asked for te.sum over 1, which is not a reduce axis; make one with te.reduce_axis((0, n)), and index with it"),
    (lambda: te.prod(F, 2, axis=te.reduce_axis(2)), "over an axis and with the second value `2`; give one of them"),
    (lambda: min(F, 6.0), "te.min or te.max (nn.clip for tensors) instead of Python's if, and, or, min, max"),
])
def test_mistakes_give_a_sentence(mistake: object, sentence: str) -> None:
    assert callable(mistake)
    with pytest.raises(DeclarationError) as caught:
        mistake()
    assert sentence in str(caught.value)


@pytest.mark.parametrize("digits", [400, 5000])  # more than a double holds; more than Python prints
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
def test_numbers_that_no_dtype_holds_are_told(dtype: str, digits: int) -> None:
    large = 10**digits
    x = te.placeholder((8,), dtype, name="x")
    said = "too large for any float" if dtype.startswith("float") else "outside"
    for make in (
        lambda i: x[i] + large, lambda i: -large * x[i], lambda i: te.max(x[i], large), lambda i: te.if_then_else(x[i] > large, x[i], 0),
        lambda i: te.const(large, dtype), lambda i: x[i] == -large,
    ):  # fmt: skip
        with pytest.raises(DeclarationError, match=rf"the {dtype} constant of \d+ bits, which is {said}"):
            te.compute((8,), make)
    with pytest.raises(DeclarationError, match="constant of type Fraction, which is too large for any float"):
        te.compute((8,), lambda i: x[i] + Fraction(large, 3))
