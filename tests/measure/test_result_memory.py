"""Arrays that a kernel uses without a copy."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen.source import ALIGNMENT
from ansor.measure.result_memory import aligned_empty


@pytest.mark.parametrize("shape", [(), (1,), (5, 7), (3, 0), (64, 64)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_every_array_is_aligned(shape: tuple[int, ...], dtype: str) -> None:
    held = [aligned_empty(shape, dtype) for _ in range(5)]
    assert all(one.shape == shape and one.dtype == np.dtype(dtype) and one.flags.c_contiguous and one.flags.writeable for one in held)
    assert not any(one.ctypes.data % ALIGNMENT for one in held if one.size)
