"""Functions of one element, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "sign", "sin", "cos", "tan", "sinh", "cosh"])
def test_functions(run: Run, name: str, dtype: str) -> None:
    x = np.concatenate([np.linspace(-6, 6, 49), [1e-3, -1e-3, 0.4999, 0.5001, 0.0, -2.0]]).astype(dtype)
    np.testing.assert_allclose(run(getattr(nn, name), x), getattr(np, name)(x), rtol=1e-6 if dtype == "float32" else 1e-13, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("name", "low", "high"), [("asin", -1, 1), ("acos", -1, 1), ("atan", -9, 9), ("asinh", -9, 9), ("acosh", 1, 9), ("atanh", -0.9, 0.9)])
def test_inverse_functions(run: Run, name: str, low: float, high: float, dtype: str) -> None:
    x = np.linspace(low, high, 49).astype(dtype)
    want = getattr(np, name.replace("a", "arc", 1))(x.astype(np.float32 if dtype == "int32" else dtype))
    np.testing.assert_allclose(run(getattr(nn, name), x), want, rtol=1e-6, atol=1e-7)


def test_hyperbolic_functions_up_to_where_they_overflow(run: Run) -> None:
    x = np.array([88.5, 89.0, -89.3], np.float32)
    for name in ("sinh", "cosh"):
        assert np.isfinite(got := run(getattr(nn, name), x)).all()
        np.testing.assert_allclose(got, getattr(np, name)(x), rtol=1e-6)


def test_round_of_what_is_not_halfway(run: Run) -> None:
    x = np.array([-2.6, -2.4, 0.4, 0.6, 7.0], np.float32)
    np.testing.assert_array_equal(run(nn.round, x), np.round(x))


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms(run: Run, name: str) -> None:
    x = np.geomspace(1e-6, 1e6, 25).astype(np.float32)
    np.testing.assert_allclose(run(getattr(nn, name), x), getattr(np, name)(x), rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_kinds_of_numbers(run: Run, name: str, dtype: str) -> None:
    x = np.array([0, 1, 3] if dtype[0] != "f" else [0, 1, -3, np.nan, np.inf, -np.inf, np.finfo(dtype).max], dtype)
    got = run(getattr(nn, name), x)
    np.testing.assert_array_equal(got, getattr(np, name)(x))
    assert got.dtype == bool


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_are_whole(run: Run, dtype: str) -> None:
    x = np.array([-3, 0, 7], dtype)
    for name in ("floor", "ceil", "trunc", "round"):
        np.testing.assert_array_equal(run(getattr(nn, name), x), x)
    np.testing.assert_array_equal(run(nn.sign, x), np.sign(x))
