"""`tvm.testing`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def assert_allclose(actual: ArrayLike, desired: ArrayLike, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """Raise AssertionError unless shapes match and values differ by at most atol + rtol * |desired|. Both may be NumPy arrays or `tvm.nd` arrays."""
    found, expected = np.asarray(actual), np.asarray(desired)
    if found.shape != expected.shape:
        raise AssertionError(f"shapes differ: found {found.shape}, expected {expected.shape}")
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, verbose=verbose)
