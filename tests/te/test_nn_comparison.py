"""Comparisons, logic and choices, against NumPy."""

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.evaluate import evaluate
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]
COMPARISONS = {"greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le, "equal": operator.eq,
               "not_equal": operator.ne}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_comparisons_of_any_shapes_and_dtypes(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), max_size=3))
    shapes = [tuple(data.draw(st.sampled_from([extent, 1])) for extent in shape[data.draw(st.integers(0, len(shape))):]) for _ in range(2)]
    dtype = data.draw(st.sampled_from(["float32", "float64", "int8", "uint8", "int32", "int64"]))
    name = data.draw(st.sampled_from(sorted(COMPARISONS)))
    generator = np.random.default_rng(0)
    values = [generator.integers(0, 3, shape).astype(dtype) for shape in shapes]
    left, right = (te.placeholder(value.shape, dtype, label) for value, label in zip(values, "xy", strict=True))
    (got,) = evaluate([getattr(nn, name)(left, right)], {"x": values[0], "y": values[1]})
    np.testing.assert_array_equal(got, COMPARISONS[name](*values))
    assert got.dtype == bool


def test_comparisons_with_numbers(run: Run) -> None:
    values = np.array([1, 2, 3], np.int32)
    assert run(lambda x: nn.greater(x, 1), values).tolist() == [False, True, True]
    assert run(lambda x: nn.less(2, x), values).tolist() == [False, False, True]


def test_comparisons_with_nan(run: Run) -> None:
    values = np.array([np.nan, 1.0], np.float32)
    for name, function in COMPARISONS.items():
        np.testing.assert_array_equal(run(getattr(nn, name), values, values), function(values, values))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(run: Run, name: str, dtype: str) -> None:
    left, right = np.array([0, 0, 1, 2]).astype(dtype), np.array([0, 3, 0, 5]).astype(dtype)
    np.testing.assert_array_equal(run(getattr(nn, name), left, right), getattr(np, name)(left, right))
    np.testing.assert_array_equal(run(nn.logical_not, left), np.logical_not(left))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_where(run: Run, array: Run, dtype: str) -> None:
    condition, x, y = np.array([[0], [1], [3]]).astype(dtype), array(3, 4), array(4)
    np.testing.assert_array_equal(run(nn.where, condition, x, y), np.where(condition, x, y))
    np.testing.assert_array_equal(run(lambda c, x: nn.where(c, x, 2.0), condition, x), np.where(condition, x, 2))


def test_choices_need_one_dtype() -> None:
    with pytest.raises(DeclarationError, match="asked for where between float32 tensor x and int32 tensor y; both need one dtype"):
        nn.where(te.placeholder((2,), "bool", "c"), te.placeholder((2,), name="x"), te.placeholder((2,), "int32", "y"))
