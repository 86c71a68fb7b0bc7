"""`te.min_value` and `te.max_value` as in TVM: for floats the finite extremes, while ours are infinite."""

from __future__ import annotations

import numpy as np

from ansor.support.bfloat16 import BFLOAT16, EPSILON
from ansor.te import scalar
from ansor.te.expr import Const, is_float


def min_value(dtype: str) -> Const:
    """The least finite value of `dtype`."""
    return Const(-_greatest(dtype), dtype) if is_float(dtype) else scalar.min_value(dtype)


def max_value(dtype: str) -> Const:
    """The greatest finite value of `dtype`."""
    return Const(_greatest(dtype), dtype) if is_float(dtype) else scalar.max_value(dtype)


def _greatest(dtype: str) -> float:
    return (2 - EPSILON) * 2.0**127 if dtype == BFLOAT16 else float(np.finfo(dtype).max)
