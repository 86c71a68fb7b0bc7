"""Whether all or any elements hold, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_all_and_any(run: Run, axis: int | None, keepdims: bool, dtype: str) -> None:
    generator = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        x = (generator.random((2, 3, 4)) < share).astype(dtype)
        np.testing.assert_array_equal(run(lambda a: nn.all(a, axis, keepdims), x), x.all(axis, keepdims=keepdims))
        np.testing.assert_array_equal(run(lambda a: nn.any(a, axis, keepdims), x), x.any(axis, keepdims=keepdims))


def test_conditions_wider_than_a_byte(run: Run) -> None:
    assert run(nn.all, np.array([256, 0.5], np.float32)) and run(nn.any, np.array([0, 256], np.int32))
