"""Operations of a statement, counted by kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.feature_table import COLUMN
from ansor.cost_model.features import extract
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Fuse, Split, Step, Unroll
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor

OPERATIONS = list(COLUMN)[:16]


def counts(sketch: Sketch) -> dict[str, float]:
    """The operation columns that are not 0, of the only statement."""
    (row,) = extract(sketch.lower_row([])).rows
    numbers = 2.0 ** row[:16].astype(np.float64) - 1
    return {name: round(float(value), 2) for name, value in zip(OPERATIONS, numbers, strict=True) if value}


def elementwise(body: Callable[[Expr, Expr], Expr], dtype: str = "float32") -> Sketch:
    """`body` of two elements, 4 times."""
    a, b = te.placeholder((4,), dtype=dtype, name="A"), te.placeholder((4,), dtype=dtype, name="B")
    return Sketch(Dag([a, b, te.compute((4,), lambda i: body(a[i], b[i]), name="C")]))


CASES: list[tuple[Callable[[Expr, Expr], Expr], dict[str, float]]] = [
    (lambda a, b: a * b + a, {"float_mad": 4}),
    (lambda a, b: a * b + a * a, {"float_mad": 4, "float_mul": 4}),
    (lambda a, b: (a + b) * a - b, {"float_mad": 4, "float_addsub": 4}),
    (lambda a, b: a / b + b, {"float_divmod": 4, "float_addsub": 4}),
    (lambda a, b: te.max(a, te.exp(b)), {"float_cmp": 4, "float_mathfunc": 4}),
    (lambda a, b: te.if_then_else(te.all(a > b, a > 0.0), a, b), {"select_op": 4, "bool_op": 4, "float_cmp": 8}),
    (lambda a, b: te.floor(a), {"float_otherfunc": 4}),
    (lambda a, b: a**2 * b, {"float_mul": 8}),
    (lambda a, b: a**3 * b, {"float_mul": 12}),
    (lambda a, b: a**2.5 * b, {"float_mul": 4, "float_mathfunc": 4}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_operations_of_a_value(case: int) -> None:
    body, expected = CASES[case]
    assert counts(elementwise(body)) == expected


def test_integer_data_counts_as_integers() -> None:
    assert counts(elementwise(lambda a, b: a * b + a, "int8")) == {"int_mad": 4}


def reduction(combine: Callable[[Expr, Tensor], Expr]) -> Sketch:
    a = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    return Sketch(Dag([a, te.compute((4,), lambda i: te.sum(combine(a[i, k], a), axis=k), name="S")]))


def test_a_reduction_counts_its_combiner() -> None:
    assert counts(reduction(lambda x, a: x)) == {"float_addsub": 24}
    assert counts(reduction(lambda x, a: x * x)) == {"float_mad": 24}
    a = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    assert counts(Sketch(Dag([a, te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="S")]))) == {"float_cmp": 24}


def test_index_arithmetic_in_a_value_skips_loops_of_one_iteration() -> None:
    a = te.placeholder((8,), name="A")
    out = te.compute((8,), lambda i: te.if_then_else(i >= 3, a[i], 0.0), name="B")
    assert counts(Sketch(Dag([a, out]))) == {"int_cmp": 8, "select_op": 8}
    assert counts(Sketch(Dag([a, out])).then(Split("B", "i", (2,), 2))) == {"int_cmp": 8, "select_op": 8, "int_mul": 8, "int_addsub": 8}
    assert counts(Sketch(Dag([a, out])).then(Split("B", "i", (8,), 2))) == {"int_cmp": 8, "select_op": 8}


def test_divisions_of_fused_loops_count_where_the_fused_loop_is() -> None:
    a = te.placeholder((6, 4, 10), name="A")
    out = te.compute((4, 6, 10), lambda i, j, k: a[j, i, k] * 2.0, name="B")
    found = counts(Sketch(Dag([a, out])).then(Fuse("B", ("i", "j"))))
    assert found["float_mul"] == 240
    assert found["int_divmod"] == 2 * 24  # quotient and remainder, for the read, once per fused iteration


def test_conditions_around_a_statement_are_one_comparison() -> None:
    a = te.placeholder((10,), name="A")
    out = te.compute((10,), lambda i: a[i] * 2.0, name="B")
    assert counts(Sketch(Dag([a, out])).then(Split("B", "i", (4,), 2))) == {"float_mul": 12, "int_cmp": 12}


@pytest.mark.parametrize(("steps", "expected"), [
    ((), {"float_mathfunc": 12, "float_addsub": 12, "float_mul": 12, "int_divmod": 12, "select_op": 12, "int_cmp": 12}),
    ((Unroll("C", "i"),), {"float_mathfunc": 4, "float_addsub": 4, "float_mul": 8}),
])  # fmt: skip
def test_copies_of_an_unrolled_body_compute_their_case(steps: tuple[Step, ...], expected: dict[str, float]) -> None:
    a = te.placeholder((12,), name="A")
    cases = te.compute((12,), lambda i: te.if_then_else(i % 3 == 0, te.exp(a[i]) + 1.0, a[i] * 2.0), name="C")
    assert counts(Sketch(Dag([a, cases])).then(*steps)) == expected


def test_a_part_that_several_cases_share_counts_once_in_each_copy() -> None:
    a = te.placeholder((12,), name="A")

    def body(i: Expr) -> Expr:
        part = te.exp(a[i])
        return te.if_then_else(i % 3 == 0, part + 1.0, te.if_then_else(i % 3 == 1, part * 2.0, part - 3.0))

    assert counts(Sketch(Dag([a, te.compute((12,), body, name="C")])).then(Unroll("C", "i"))) == {"float_mathfunc": 12, "float_addsub": 8, "float_mul": 4}
