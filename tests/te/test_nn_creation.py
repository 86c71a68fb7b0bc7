"""Constants, ranges and shapes, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]
ARANGE: Callable[..., te.Tensor] = nn.arange


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool"])
def test_constants(run: Run, array: Run, dtype: str) -> None:
    np.testing.assert_array_equal(run(lambda: nn.full((2, 3), dtype, 1)), np.full((2, 3), 1, dtype))
    np.testing.assert_array_equal(run(lambda: nn.full((), "float32", te.const(7, "int32"))), np.float32(7))
    np.testing.assert_array_equal(run(lambda: nn.zeros(4, dtype)), np.zeros(4, dtype))
    np.testing.assert_array_equal(run(lambda: nn.ones((1, 2), dtype)), np.ones((1, 2), dtype))
    x = array(2, 2)
    np.testing.assert_array_equal(run(nn.zeros_like, x), np.zeros_like(x))
    np.testing.assert_array_equal(run(nn.ones_like, x), np.ones_like(x))
    np.testing.assert_array_equal(run(lambda a: nn.full_like(a, 2.5), x), np.full_like(x, 2.5))


@pytest.mark.parametrize("ends", [(20,), (1, 20), (1, 20, 2), (1, 20, 1.5), (1, 20.5), (20, 1, -1), (20, 1, -1.5), (0, 1, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_ranges(run: Run, ends: tuple[float, ...], dtype: str) -> None:
    np.testing.assert_array_equal(run(lambda: ARANGE(*ends, dtype=dtype)), np.arange(*ends).astype(dtype))


@pytest.mark.parametrize("ends", [(0,), (5, 5), (1, 5, -1), (1, 5, 0)])
def test_empty_ranges(ends: tuple[float, ...]) -> None:
    with pytest.raises(DeclarationError, match="which has no element; extents have to be at least 1"):
        ARANGE(*ends)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_shapes(run: Run, array: Run, dtype: str) -> None:
    for shape in ((8, 7, 13), (3,)):
        assert run(lambda a: nn.shape_of(a, dtype), array(*shape)).tolist() == list(shape)
        assert run(lambda a: nn.size_of(a, dtype), array(*shape)) == np.prod(shape)
    assert run(lambda a: nn.size_of(a, dtype), np.float32(3)) == 1
    with pytest.raises(DeclarationError, match="has no dimension"):
        nn.shape_of(te.placeholder((), name="s"))
