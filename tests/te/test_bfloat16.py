"""bfloat16 in declarations: elements are read as float32, and stored where a declaration says so."""

import ml_dtypes
import numpy as np
import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.double import in_double
from ansor.ir.evaluate import evaluate
from ansor.te import nn
from ansor.te.expr import Cast, Expr
from ansor.te.tensor import Read, Tensor

A = te.placeholder((6, 5), "bfloat16", name="A")
D = te.placeholder((6, 5), "float64", name="D")
BF = ml_dtypes.bfloat16


@pytest.mark.parametrize(("expr", "dtype"), [
    (A[0, 0], "float32"), (A[0, 0] + 1, "float32"), (2.5 * A[0, 0], "float32"), (A[0, 0] * D[0, 0], "float64"), (te.exp(A[0, 0]), "float32"),
    (A[0, 0] > 0, "bool"), (te.if_then_else(A[0, 0] > 0, A[0, 0], 0.0), "float32"), (A[0, 0].astype("int8"), "int8"),
    (te.cast("bfloat16", A[0, 0] + 1), "bfloat16"), (te.cast("bfloat16", D[0, 0]), "bfloat16"), (te.min_value("bfloat16") + A[0, 0], "float32"),
    (te.cast("bfloat16", A[0, 0]) * te.cast("bfloat16", A[0, 1]), "float32"), (te.max(A[0, 0], te.const(1.5, "bfloat16")), "float32"),
])  # fmt: skip
def test_values_are_float32_until_they_are_stored(expr: Expr, dtype: str) -> None:
    assert expr.dtype == dtype


def test_what_is_only_moved_is_not_converted() -> None:
    moved = te.cast("bfloat16", A[1, 2])
    assert isinstance(moved, Read) and moved.dtype == "bfloat16"
    stored = te.cast("bfloat16", D[0, 0])
    assert isinstance(stored, Cast) and isinstance(stored.value, Cast) and stored.value.dtype == "float32"
    padded = nn.pad(A, (1, 0), (0, 2))
    assert padded.dtype == "bfloat16"
    a = np.arange(30).reshape(6, 5).astype(BF)
    (found,) = evaluate([padded], {"A": a})
    assert found.dtype == BF and np.array_equal(found, np.pad(a, ((1, 0), (0, 2))))


def test_stores_round_to_the_nearest_and_halves_to_even() -> None:
    x = te.placeholder((5,), "float32", name="x")
    out = te.compute((5,), lambda i: x[i].astype("bfloat16"), name="y")
    given = np.array([1.0, 1.00390625, 1.01171875, -1.0040, 3e38], np.float32)  # 1, halves between neighbours, a little more than half, large
    (found,) = evaluate([out], {"x": given})
    assert found.dtype == BF and found[:4].tolist() == [1.0, 1.0, 1.015625, -1.0078125] and np.isclose(float(found[4]), 3e38, rtol=2**-8)


def product(narrow: str) -> list[Tensor]:
    a, b = te.placeholder((8, 4), narrow, name="A"), te.placeholder((4, 8), narrow, name="B")
    return [a, b, nn.matmul(a, b, name="C")]


def test_products_are_summed_in_float32() -> None:
    a, b, c = product("bfloat16")
    assert c.dtype == "float32"
    x, y = (np.random.default_rng(k).standard_normal(shape).astype(BF) for k, shape in enumerate([(8, 4), (4, 8)]))
    (found,) = evaluate([c], {"A": x, "B": y})
    assert np.allclose(found, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-6, atol=1e-6)
    assert nn.matmul(a, b, out_dtype="float64").dtype == "float64"


def test_the_reference_in_double_precision_does_not_round() -> None:
    a, b, c = product("bfloat16")
    double = Dag(in_double([a, b, nn.relu(nn.cast(c, "bfloat16"))]))
    assert {tensor.dtype for tensor in double.stages} == {"float64"} and "bfloat16" not in str(double)


def test_where_it_rounds() -> None:
    """The last rounding of an output counts as a part of the output; those before it are roundings of what is computed with."""
    a, b, c = product("bfloat16")
    once, on_the_way = nn.cast(c, "bfloat16"), nn.cast(nn.relu(nn.cast(c, "bfloat16")), "bfloat16")
    twice_read = te.compute((8, 8), lambda i, j: once[i, j] * 2.0, name="twice")
    assert [Dag(tensors).rounding for tensors in ([a, b, c], [a, b, once], [a, b, on_the_way], [a, b, once, twice_read])] == ["", "", "bfloat16", "bfloat16"]


@pytest.mark.parametrize(("filling", "rounding"), [(0.0, ""), (-1.5, ""), (0.1, "bfloat16")])
def test_copies_are_no_rounding(filling: float, rounding: str) -> None:
    """Padding with a bfloat16 chooses between bfloat16 numbers."""
    x = te.placeholder((6,), "bfloat16", name="x")
    padded = te.compute((8,), lambda i: te.select(te.all(i >= 1, i < 7), te.max(x[i - 1], filling), filling).astype("bfloat16"), name="padded")
    k = te.reduce_axis(3, "k")
    y = te.compute((6,), lambda i: te.sum(padded[i + k].astype("float32"), axis=k), name="y")
    assert Dag([x, y]).rounding == rounding
