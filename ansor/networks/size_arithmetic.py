"""How calls of other sizes are computed by networks of a few sizes: in batches, or padded. Needs no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]


def batch_sizes(rows: int, largest: int) -> list[int]:
    """The sizes of the batches in which this many rows are computed, the largest first."""
    sizes = [largest] * (rows // largest)
    left = rows % largest
    return sizes + [1 << bit for bit in reversed(range(left.bit_length())) if left >> bit & 1]


def all_batch_sizes(largest: int) -> tuple[int, ...]:
    """All sizes of batches that calls of any number of rows may need, the smallest first."""
    return tuple(sorted({1 << bit for bit in range(largest.bit_length())} | {largest}))


def size_for(length: int, sizes: Sequence[int]) -> int:
    """The first of these sizes, in order, that a call of this length can be padded to."""
    return next(one for one in sizes if one >= length)


def padded_array(array: Array, axis: int, length: int) -> Array:
    """An array of this extent or less, padded with its last element, which is an index if the array holds indices."""
    more = length - array.shape[axis]
    last = array[(slice(None),) * axis + (slice(-1, None),)]
    return np.concatenate([array, np.repeat(last, more, axis)], axis) if more else array
