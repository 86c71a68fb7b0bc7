"""The operations of a value, by the buffers that they depend on."""

from collections.abc import Callable

import pytest

from ansor import te
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.operations import DIVISION, EXTREME, operations_of
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Unroll
from ansor.te.expr import Axis, Expr

A, B = te.placeholder((8, 4), name="a"), te.placeholder((4,), name="b")
Reducer = Callable[[Expr, Axis], Expr]


def found(value: Callable[[Expr, Expr, Expr], Expr], reduce: Reducer = te.sum, *, optimizes: bool = True) -> dict[str, tuple[float, float, float]]:
    """Buffers, `all` for loop variables too -> arithmetic, choices and calls, of y[i] = sum over k of value(a[i, k], b[k], i)."""
    k = te.reduce_axis(4, name="k")
    result = te.compute((8,), lambda i: reduce(value(A[i, k], B[k], i), k), name="y")
    statement = statements_of(Sketch(Dag([A, B, result])).lower_row(()))[-1]
    operations = operations_of(statement.nest, optimizes)
    return {_name(one.reads): (one.arithmetic, one.choices, one.calls) for one in operations}


def _name(reads: object) -> str:
    return "all" if reads is None else " ".join(sorted(buffer.name for buffer in reads)) if isinstance(reads, frozenset) else ""


@pytest.mark.parametrize(("value", "wanted"), [
    (lambda a, b, i: a * b, {"all": (1, 0, 0)}),
    (lambda a, b, i: a + b, {"all": (1, 0, 0), "a b": (1, 0, 0)}),
    (lambda a, b, i: te.exp(b) * a, {"all": (1, 0, 0), "b": (0, 0, 1)}),
    (lambda a, b, i: a / b, {"all": (1, 0, 0), "a b": (0, 0, DIVISION)}),
    (lambda a, b, i: te.maximum(a, 0.0) * b, {"all": (1, 0, 0), "a": (1, 0, 0)}),
    (lambda a, b, i: te.maximum(a, b), {"all": (1, 0, 0), "a b": (EXTREME, 0, 0)}),
    (lambda a, b, i: te.select(i < 4, a, b), {"all": (1, 1, 0)}),
    (lambda a, b, i: te.abs(a) + te.floor(b), {"all": (1, 0, 0), "a": (1, 0, 0), "b": (1, 0, 0), "a b": (1, 0, 0)}),
    (lambda a, b, i: te.sqrt(a), {"all": (1, 0, 0), "a": (0, 0, DIVISION)}),
    (lambda a, b, i: te.power(a, 4.0), {"all": (1, 0, 0), "a": (2, 0, 0)}),
])  # fmt: skip
def test_operations_are_grouped_by_what_they_read(value: Callable[[Expr, Expr, Expr], Expr], wanted: dict[str, tuple[float, float, float]]) -> None:
    assert found(value) == wanted


def test_an_extreme_of_floats_keeps_nan() -> None:
    assert found(lambda a, b, i: a * b, te.max) == {"all": (EXTREME, 0, 0), "a b": (1, 0, 0)}


def test_together_arithmetic_is_one_instruction() -> None:
    assert found(lambda a, b, i: te.exp(b) * a + te.sqrt(a), optimizes=False) == {"all": (1, 0, 2)}


def test_a_choice_between_copies_of_an_unrolled_body_costs_nothing() -> None:
    """Of twelve copies, four compute the square root, and the others a product; all read a."""
    a = te.placeholder((12,), name="a")
    cases = te.compute((12,), lambda i: te.select(i % 3 == 0, te.sqrt(a[i]), a[i] * 2.0), name="y")
    (statement,) = statements_of(Sketch(Dag([a, cases])).then(Unroll("y", "i")).lower_row(()))
    (everything,) = operations_of(statement.nest, True)
    assert (everything.reads, everything.choices) == (None, 0.0)
    assert (everything.arithmetic, everything.calls) == pytest.approx((1 + 2 / 3, DIVISION / 3))
