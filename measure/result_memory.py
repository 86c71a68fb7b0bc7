"""Memory for results, aligned as kernels need it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import ALIGNMENT


def aligned_empty(shape: Sequence[int], dtype: str) -> NDArray[np.generic]:
    """An uninitialised array whose data starts at a multiple of `ALIGNMENT` bytes, so that a kernel uses it without a copy."""
    item = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * item.itemsize
    room = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].view(item).reshape(shape)
