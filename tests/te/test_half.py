"""float16 in declarations."""

import math
from typing import cast

import numpy as np
import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor

A = te.placeholder((6, 5), "float16", name="A")
B = te.placeholder((6, 5), "float32", name="B")
N = te.placeholder((6, 5), "int32", name="N")


@pytest.mark.parametrize(("expr", "dtype"), [
    (A[0, 0] + 1, "float16"), (2.5 * A[0, 0], "float16"), (A[0, 0] / 3, "float16"), (A[0, 0] + A[0, 1], "float16"), (A[0, 0] + N[0, 0], "float16"),
    (A[0, 0] * B[0, 0], "float32"), (B[0, 0] - A[0, 0], "float32"), (A[0, 0] + te.const(1.0, "float64"), "float64"), (te.max(A[0, 0], 0), "float16"),
    (te.exp(A[0, 0]), "float16"), (te.power(A[0, 0], 2), "float16"), (te.atan2(A[0, 0], B[0, 0]), "float32"), (A[0, 0] > 1, "bool"),
    (te.if_then_else(A[0, 0] > 0, A[0, 0], 0.0), "float16"), (A[0, 0].astype("int8"), "int8"), (te.cast("float16", N[0, 0]), "float16"),
    (te.min_value("float16"), "float16"), (te.floormod(A[0, 0], 2.0), "float16"),
])  # fmt: skip
def test_a_number_takes_the_dtype_and_wider_floats_win(expr: Expr, dtype: str) -> None:
    assert expr.dtype == dtype


def test_limits_and_identities() -> None:
    assert te.max_value("float16").value == math.inf and te.infinity("float16").dtype == "float16"
    with pytest.raises(DeclarationError, match="bitwise operators need integers"):
        A[0, 0] & 1


def test_a_reducer_that_starts_from_the_least_finite_half_is_a_maximum() -> None:
    k = te.reduce_axis((0, 5), "k")
    maximum = te.comm_reducer(lambda x, y: te.max(x, y), lambda dtype: te.const(-65504.0, dtype), name="maximum")
    out = te.compute((6,), lambda i: cast(Expr, maximum(A[i, k], axis=k)), name="C")
    a = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float16)
    assert np.array_equal(evaluate([out], {"A": a})[0], a.max(axis=1))


def test_every_operation_rounds_to_half() -> None:
    out = te.compute((6, 5), lambda i, j: (A[i, j] * 3.7 + 1000) - 1000, name="C")
    a = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float16)
    (found,) = evaluate([out], {"A": a})
    assert found.dtype == np.float16
    assert np.array_equal(found, a * np.float16(3.7) + np.float16(1000) - np.float16(1000))
    exact = evaluate([out], {"A": a}, "float64")[0]
    assert exact.dtype == np.float64 and np.allclose(exact, a.astype(np.float64) * float(np.float16(3.7)), atol=1e-9)
    assert not np.allclose(found, exact, atol=1e-3)


def product(dtype: str, to: str) -> tuple[Tensor, Tensor, Tensor]:
    a, b, k = te.placeholder((8, 4), dtype, name="A"), te.placeholder((4, 8), dtype, name="B"), te.reduce_axis((0, 4), "k")
    return a, b, te.compute((8, 8), lambda i, j: te.sum(a[i, k].astype(to) * b[k, j].astype(to), axis=k), name="C")


def test_operations_and_keys() -> None:
    dags = {words: Dag(product(*words)) for words in [("float16", "float16"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")]}
    assert {dag.flop for dag in dags.values()} == {2 * 8 * 8 * 4}
    assert len({dag.key for dag in dags.values()}) == 4
    assert [dag.rounding for dag in dags.values()] == ["float16", "", "", "float64"]
