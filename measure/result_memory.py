"""Memory for large results, used again when nobody has the result any more.

The operating system hands out fresh memory page by page, at the first touch, and a C library gives large blocks back at once: a kernel that writes 50 MB
of new results spends half of its time on that.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import ALIGNMENT

if TYPE_CHECKING:
    import torch

LEAST_BYTES = 1 << 18
"""Results from this size on; C libraries keep smaller blocks themselves."""


def aligned_empty(shape: Sequence[int], dtype: str) -> NDArray[np.generic]:
    """An array without contents whose data starts at a multiple of `ALIGNMENT` bytes: a kernel uses it without a copy."""
    item = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * item.itemsize
    room = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].view(item).reshape(shape)


class ResultMemory:
    """Gives tensors of one shape. One block that came back is kept; it is used again only after the tensor, and every view of it, is gone."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        import torch

        self._shape, self._dtype = tuple(shape), dtype
        self._free: list[NDArray[np.generic]] = []
        self._lent: dict[int, weakref.ref[NDArray[np.generic]]] = {}
        self._tensor_of = torch.from_numpy

    def tensor(self) -> torch.Tensor:
        """A tensor without contents, aligned to `ALIGNMENT` bytes."""
        try:
            block = self._free.pop()
        except IndexError:
            block = aligned_empty(self._shape, self._dtype)
        # The storage of the tensor is all that holds this view: its end is the end of the tensor and of all that share its memory.
        view, free, lent = block.view(), self._free, self._lent

        def returned(end: weakref.ref[NDArray[np.generic]]) -> None:
            del lent[id(end)]
            if not free:
                free.append(block)

        watch = weakref.ref(view, returned)
        lent[id(watch)] = watch
        return self._tensor_of(view)
