"""Expressions and indices as C text."""

from __future__ import annotations

import math

import pytest

from ansor.codegen.dialect import Helpers, literal
from ansor.codegen.values import Lanes, Writer, computable, in_bounds, vectorizable
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var, of
from ansor.ir.loops import Access, Buffer, Guard, IndexValue
from ansor.te.expr import Binary, Cast, Const, Expr, Select

ROW, COLUMN = Var("i", 8), Var("j", 8)
X = Buffer("x", (8, 8), "float32", "input")
NARROW = Buffer("n", (8, 8), "int8", "input")


def read(buffer: Buffer = X, row: Linear | None = None, column: Linear | None = None) -> Access:
    return Access(buffer, (of(ROW) if row is None else row, of(COLUMN) if column is None else column), buffer.dtype)


def lanes(count: int = 4) -> Writer:
    return Writer(Helpers(), lanes=Lanes(COLUMN, count, Linear((), 0)))


def less(a: Expr, b: Expr) -> Binary:
    return Binary("lt", a, b, "bool")


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (1, "float32", "1.0f"), (-2, "float64", "(-2.0)"), (math.inf, "float32", "INFINITY"), (-math.inf, "float64", "(-INFINITY)"), (math.nan, "float32", "NAN"),
    (1e39, "float32", "INFINITY"), (1e39, "float64", "1.0e+39"), (1e-46, "float32", "0.0f"), (1e-45, "float32", "1.0e-45f"), (-0.0, "float32", "(-0.0f)"),
    (0.1, "float32", "0.1f"), (True, "bool", "1"), (-128, "int8", "(-128)"), (-(2**31), "int32", "(-2147483647 - 1)"),
    (-(2**63), "int64", "(-9223372036854775807LL - 1)"), (2**40, "int64", "1099511627776LL"),
])  # fmt: skip
def test_literals(value: float, dtype: str, text: str) -> None:
    assert literal(value, dtype) == text


@pytest.mark.parametrize(("index", "text"), [
    (of(ROW) * 4 + of(COLUMN) - 3, "i * 4 + j - 3"), (of(ROW) * -2 + 7, "i * (-2) + 7"), (Linear((), -1), "-1"), (of(ROW) * 0, "0"),
    (of(Quotient(of(ROW) * 3 + of(COLUMN), 5)), "((i * 3 + j) / 5)"), (of(Remainder(of(ROW), 3)) * 2, "((i) % 3) * 2"),
    (of(Quotient(of(ROW) - 3, 2)), "ansor_floordiv(i - 3, 2)"), (of(Remainder(of(ROW) - 3, 2)), "ansor_floormod(i - 3, 2)"),
])  # fmt: skip
def test_indices(index: Linear, text: str) -> None:
    assert Writer(Helpers()).index(index) == text


def test_unrolled_variables_become_numbers() -> None:
    writer = Writer(Helpers()).at({ROW: 5}, None)
    assert writer.index(of(ROW) * 4 + of(COLUMN)) == "j + 20"
    assert writer.index(of(Quotient(of(ROW) * 3 + of(COLUMN), 8)) + of(Remainder(of(ROW), 3))) == "((j + 7) / 8) + 3"


def test_lanes_read_vectors_broadcast_and_gather() -> None:
    writer = lanes()
    assert writer.vector(read()) == "*(const f32x4 *)&x[i * 8]"
    assert writer.vector(read(column=of(ROW))) == "(x[i * 9] - (f32x4){})"
    assert writer.vector(read(row=of(COLUMN), column=of(ROW))) == "(f32x4){x[i], x[i + 8], x[i + 16], x[i + 24]}"
    assert writer.vector(Const(0.0, "float32")) == "(f32x4){}"
    assert writer.vector(IndexValue(of(COLUMN) * 2 + of(ROW))) == "((int)(i) + (i32x4){0, 2, 4, 6})"


def test_narrow_values_stay_narrow() -> None:
    """C computes with ints: a narrow value is brought back, so that it wraps and fits beside a vector; in vectors it is computed without a sign."""
    n, scalar = read(NARROW), read(NARROW, column=Linear())
    assert Writer(Helpers()).scalar(Binary("add", n, n, "int8")) == "(signed char)(n[i * 8 + j] + n[i * 8 + j])"
    choice = Select(less(scalar, Const(3, "int8")), scalar, Const(4, "int8"), "int8")
    assert Writer(Helpers()).scalar(choice) == "(signed char)((n[i * 8] < 3) ? n[i * 8] : 4)"
    assert lanes().vector(Binary("mul", n, n, "int8")) == "(i8x4)((u8x4)*(const i8x4 *)&n[i * 8] * (u8x4)*(const i8x4 *)&n[i * 8])"
    assert lanes().vector(less(scalar, scalar)) == "((unsigned char)(n[i * 8] < n[i * 8]) + (u8x4){})"


def test_what_a_condition_guards_is_not_loaded_ahead() -> None:
    loaded: list[str] = []

    def load(text: str, kind: str) -> str:
        loaded.append(text)
        return f"in{len(loaded)}"

    writer = Writer(Helpers(), load=load)
    first, second = less(read(), Const(1.0, "float32")), less(read(row=of(ROW) - 1), Const(2.0, "float32"))
    text = writer.scalar(Select(Binary("and", first, second, "bool"), read(row=of(ROW) - 2), Const(0.0, "float32"), "float32"))
    assert loaded == ["x[i * 8 + j]"]
    assert text == "(((in1 < 1.0f) && (x[i * 8 + j - 8] < 2.0f)) ? x[i * 8 + j - 16] : 0.0f)"


def test_lanes_choose_by_mask_only_where_both_sides_may_be_computed() -> None:
    test = less(read(), Const(1.0, "float32"))
    assert vectorizable(Select(test, read(), Const(0.0, "float32"), "float32"), COLUMN)
    beyond = read(row=of(ROW) - 1)
    assert not vectorizable(Select(test, beyond, Const(0.0, "float32"), "float32"), COLUMN), "a read that the choice guards"
    inside = Guard(of(ROW) - 1, 0, None)
    assert vectorizable(Select(test, beyond, Const(0.0, "float32"), "float32"), COLUMN, [inside]), "computed only where it can be read"
    assert not vectorizable(Select(test, beyond, Const(0.0, "float32"), "float32"), COLUMN, [Guard(of(ROW), 0, None)]), "a row further"
    assert not vectorizable(Select(test, beyond, Const(0.0, "float32"), "float32"), ROW, [inside]), "the guard is not the same for all lanes"
    guarded = Binary("and", test, less(beyond, Const(1.0, "float32")), "bool")
    assert not vectorizable(Select(guarded, read(), Const(0.0, "float32"), "float32"), COLUMN), "a read that the first half of the condition guards"
    whole = Buffer("k", (8, 8), "int32", "input")
    divided = Binary("floordiv", Const(7, "int32"), read(whole, column=Linear()), "int32")
    assert not vectorizable(Select(less(read(whole), Const(1, "int32")), divided, Const(0, "int32"), "int32"), COLUMN), "a division that the choice guards"
    assert not vectorizable(Select(less(read(NARROW), Const(1, "int8")), read(), Const(0.0, "float32"), "float32"), COLUMN), "a mask of other lanes"


def test_bounds_and_computable() -> None:
    assert in_bounds(read(row=of(ROW) + 1), [Guard(of(ROW), None, 7)]) and not in_bounds(read(row=of(ROW) + 1), [Guard(of(ROW), None, 8)])
    again = Var("k", 3)
    wide = Buffer("w", (21, 8), "float32", "input")
    assert in_bounds(Access(wide, (of(ROW) * 3 + of(again), of(COLUMN)), "float32"), [Guard(of(ROW), None, 7)]), "a multiple of what is guarded, and a rest"
    assert not in_bounds(Access(wide, (of(ROW) * 3 + of(again) + 1, of(COLUMN)), "float32"), [Guard(of(ROW), None, 7)]), "the rest reaches further"
    assert not in_bounds(Access(wide, (of(ROW) * 3 + of(again), of(COLUMN)), "float32"), [Guard(of(ROW) * 2, None, 14)]), "no whole multiple"
    guarded = Linear(((again, 0), (ROW, 1)), 0)
    assert in_bounds(read(row=of(ROW) + 1), [Guard(guarded, None, 7)]), "the first loop does not move what is guarded"
    assert not in_bounds(read(row=of(ROW) * -1 + 8), [Guard(of(ROW), 0, 8)]), "backwards"
    assert in_bounds(read()) and not in_bounds(read(row=of(ROW) + 1)) and not in_bounds(read(row=of(ROW) - 1))
    assert not in_bounds(read(row=of(Opaque(read(NARROW)))))
    assert in_bounds(read(row=of(Remainder(of(ROW) + 5, 8))))
    table = Buffer("t", (8,), "int32", "input")
    number = Access(table, (of(ROW),), "int32")
    assert computable(Binary("floormod", number, Const(3, "int32"), "int32"))
    assert not computable(Binary("floormod", Const(3, "int32"), number, "int32"))
    assert not computable(IndexValue(of(Opaque(number))))


@pytest.mark.parametrize(("source", "target", "text"), [
    ("float32", "int32", "__builtin_convertvector(*(const f32x4 *)&b[i * 8], i32x4)"),
    ("int8", "float32", "__builtin_convertvector(*(const i8x4 *)&b[i * 8], f32x4)"),
])  # fmt: skip
def test_conversions_of_vectors(source: str, target: str, text: str) -> None:
    assert lanes().vector(Cast(read(Buffer("b", (8, 8), source, "input")), target)) == text


def test_conversions_to_and_from_bool_are_scalar() -> None:
    flags = Buffer("f", (8, 8), "bool", "input")
    assert not vectorizable(Cast(read(flags), "float32"), COLUMN)
    assert not vectorizable(Cast(read(), "bool"), COLUMN)
    assert Writer(Helpers()).scalar(Cast(read(), "bool")) == "(x[i * 8 + j] != 0)"


def test_helpers_are_written_once_types_first() -> None:
    helpers = Helpers()
    assert helpers.extreme("max", "float32", 4) == helpers.extreme("max", "float32", 4) == "max_f32x4"
    assert helpers.call("sigmoid", "float64", 1) == "sigmoid_f64"
    assert helpers.call("exp", "float32", 8) == "exp_f32x8"
    lines = helpers.text().splitlines()
    assert len(lines) == len(set(lines))
    assert [line.startswith("typedef") for line in lines] == sorted([line.startswith("typedef") for line in lines], reverse=True)
