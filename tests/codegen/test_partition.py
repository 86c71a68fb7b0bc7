"""The range of a loop in which a condition holds, against trying every value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.codegen.partition import partition
from ansor.ir.interpreter import evaluate, index_value
from ansor.ir.linear import Linear, Opaque, Var, of
from ansor.ir.loops import Access, Buffer, IndexValue
from ansor.te.expr import Binary, Const, Expr, Select

ROW, COLUMN = Var("i", 5), Var("j", 12)
THEN, OTHERWISE = Const(1.0, "float32"), Const(0.0, "float32")
BELOW = Binary("lt", IndexValue(of(COLUMN)), Const(3, "int32"), "bool")
COMPARISONS = ("lt", "le", "gt", "ge")


@st.composite
def comparisons(draw: st.DrawFn) -> Binary:
    value = of(COLUMN) * draw(st.sampled_from([0, 1, -1])) + of(ROW) * draw(st.integers(-2, 2)) + draw(st.integers(-6, 6))
    sides: list[Expr] = [IndexValue(value), Const(draw(st.integers(-3, 15)), "int32")]
    if draw(st.booleans()):
        sides.reverse()
    return Binary(draw(st.sampled_from(COMPARISONS)), sides[0], sides[1], "bool")


def both(tests: list[Binary]) -> Expr:
    result: Expr = tests[0]
    for test in tests[1:]:
        result = Binary("and", result, test, "bool")
    return result


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(comparisons(), min_size=1, max_size=4), st.integers(0, 4))
def test_the_range_is_where_all_tests_hold(tests: list[Binary], i: int) -> None:
    condition = both(tests)
    found = partition(Select(condition, THEN, OTHERWISE, "float32"), COLUMN)
    if found is None:
        assert not any(int(side.value.coefficient(COLUMN)) for test in tests for side in test.children if isinstance(side, IndexValue))
        return
    lows = [index_value(bound, {}, {ROW: i, COLUMN: 0}) for bound in found.lows]
    highs = [index_value(bound, {}, {ROW: i, COLUMN: 0}) for bound in found.highs]
    apart = all(bool(evaluate(test, {}, {ROW: i, COLUMN: 0})) for test in found.conditions)  # the column has no part in these
    for j in range(12):
        inside = apart and all(j >= low for low in lows) and all(j < high for high in highs)
        assert inside == bool(evaluate(condition, {}, {ROW: i, COLUMN: j}))


def test_data_may_bound_the_range_where_it_can_be_read_ahead() -> None:
    lengths = Buffer("n", (5,), "int32", "input")
    length = Access(lengths, (of(ROW),), "int32")
    test = Binary("lt", IndexValue(of(COLUMN)), Const(3, "int32"), "bool")
    positive = Binary("gt", length, Const(0, "int32"), "bool")
    assert partition(Select(both([test, positive]), THEN, OTHERWISE, "float32"), COLUMN) is not None
    beyond = Binary("gt", Access(lengths, (of(ROW) + 1,), "int32"), Const(0, "int32"), "bool")
    assert partition(Select(both([test, beyond]), THEN, OTHERWISE, "float32"), COLUMN) is None, "what another test guards is not read ahead"
    hidden = Binary("lt", IndexValue(of(COLUMN)), IndexValue(of(Opaque(length))), "bool")
    assert partition(Select(hidden, THEN, OTHERWISE, "float32"), COLUMN) is None


@pytest.mark.parametrize("value", [
    THEN,
    Select(Binary("eq", IndexValue(of(COLUMN)), Const(3, "int32"), "bool"), THEN, OTHERWISE, "float32"),
    Select(Binary("or", BELOW, BELOW, "bool"), THEN, OTHERWISE, "float32"),
    Select(Binary("lt", IndexValue(of(COLUMN) * 2), Const(3, "int32"), "bool"), THEN, OTHERWISE, "float32"),
    Select(Binary("lt", IndexValue(of(ROW) + Linear((), 2)), Const(3, "int32"), "bool"), THEN, OTHERWISE, "float32"),
], ids=["no choice", "equal", "or", "twice", "another loop"])  # fmt: skip
def test_anything_else_is_left_alone(value: Expr) -> None:
    assert partition(value, COLUMN) is None
