"""Fixtures for the language and its operators: random arrays, and a declaration's value for arrays."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor


@pytest.fixture
def array() -> Callable[..., NDArray[np.float32]]:
    """array(2, 3): normally distributed float32 of that shape, the same in every run."""
    generator = np.random.default_rng(7)
    return lambda *shape: generator.standard_normal(shape, dtype=np.float32)


@pytest.fixture
def run() -> Callable[..., NDArray[np.float32]]:
    """run(declare, a, b): the value of declare(placeholder for a, placeholder for b)."""

    def value(declare: Callable[..., Tensor], *arrays: NDArray[np.generic]) -> NDArray[np.generic]:
        placeholders = [te.placeholder(given.shape, str(given.dtype), f"x{k}") for k, given in enumerate(arrays)]
        output = declare(*placeholders)
        (result,) = evaluate([output], dict(zip(placeholders, arrays, strict=True)))
        assert result.shape == output.shape
        assert result.dtype == output.dtype
        return result

    return value  # type: ignore[return-value]  # float32 in most tests
