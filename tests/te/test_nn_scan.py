"""Running sums and products, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["int32", "float64", "int8"])
def test_running(run: Run, dtype: str, axis: int | None, exclusive: bool) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype) % 5 - 2
    for name, start in (("cumsum", 0), ("cumprod", 1)):
        want = getattr(np, name)(x, axis, dtype=dtype)
        if exclusive:
            along = -1 if axis is None else axis
            first = np.full_like(np.take(want, [0], along), start)
            want = np.concatenate([first, np.delete(want, -1, along)], along)
        np.testing.assert_array_equal(run(lambda a, name=name: getattr(nn, name)(a, axis, exclusive=exclusive), x), want)


def test_in_another_dtype(run: Run) -> None:
    x = np.full(10, 100, np.int8)
    np.testing.assert_array_equal(run(lambda a: nn.cumsum(a, 0, "int32"), x), np.cumsum(x, dtype=np.int32))
    assert run(nn.cumsum, x > 0).tolist() == list(range(1, 11))
