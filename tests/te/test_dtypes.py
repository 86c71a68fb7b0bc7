"""The tables of dtypes, compared with NumPy's and ml_dtypes'."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ansor.te.dtypes import BYTES, INTEGER_LIMITS
from ansor.te.expr import DTYPES, is_float


def test_sizes() -> None:
    assert set(DTYPES) < set(BYTES)
    assert all(size == np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).itemsize for dtype, size in BYTES.items())


def test_limits_of_integers() -> None:
    assert set(INTEGER_LIMITS) == {dtype for dtype in DTYPES if not is_float(dtype)}
    assert all(limits == (np.iinfo(dtype).min, np.iinfo(dtype).max) for dtype, limits in INTEGER_LIMITS.items() if dtype != "bool")
