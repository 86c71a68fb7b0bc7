"""Division with a remainder, bits and shifts, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]
INTEGERS = ["int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("dtype", [*INTEGERS, "uint8", "float32", "float64"])
def test_divisions(run: Run, dtype: str) -> None:
    signs = [1] if dtype == "uint8" else [1, -1]
    x = np.array([a * s for a in (0, 1, 5, 6, 7, 100) for s in signs]).astype(dtype)
    y = np.array([b * s for b in (1, 2, 3, 7) for s in signs]).astype(dtype)[:, None]
    np.testing.assert_array_equal(run(nn.floor_divide, x, y), np.floor_divide(x, y))
    np.testing.assert_array_equal(run(nn.floor_mod, x, y), np.mod(x, y))
    np.testing.assert_array_equal(run(nn.trunc_divide, x, y), np.trunc(x / y).astype(dtype))
    np.testing.assert_array_equal(run(nn.trunc_mod, x, y), np.fmod(x, y))


@pytest.mark.parametrize("dtype", [*INTEGERS, "uint8"])
def test_bits(run: Run, dtype: str) -> None:
    x, y = np.array([[0, 1, 5, 127, 64, -1 % 128]], dtype), np.array([[0], [3], [85]], dtype)
    if dtype != "uint8":
        x, y = np.concatenate([x, -x - 1], 1), np.concatenate([y, -y])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        np.testing.assert_array_equal(run(getattr(nn, name), x, y), getattr(np, name)(x, y))
    np.testing.assert_array_equal(run(nn.bitwise_not, x), np.invert(x))
    np.testing.assert_array_equal(run(lambda a: nn.bitwise_and(a, 6), x), x & 6)


@pytest.mark.parametrize("dtype", [*INTEGERS, "uint8"])
def test_shifts(run: Run, dtype: str) -> None:
    x, y = np.array([0, 1, 5, 100, 127], dtype), np.array([[0], [1], [6]], dtype)
    x = x if dtype == "uint8" else np.concatenate([x, -x])
    np.testing.assert_array_equal(run(nn.left_shift, x, y), np.left_shift(x, y))
    np.testing.assert_array_equal(run(nn.right_shift, x, y), np.right_shift(x, y))
    np.testing.assert_array_equal(run(lambda a: nn.left_shift(a, 2), x), x << 2)
