"""The memory of a network: aligned arrays, large ones in pages of 2 MB if Linux offers them.

A network reads all of its weights in each call, more than the processor keeps addresses of 4 KB pages for. In a virtual machine, each address that it looks up
takes two walks through page tables. On an Emerald Rapids, six networks are 0 to 4 % faster in large pages.
"""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ansor.graph.memory import ALIGNMENT, aligned
from ansor.graph.shared_constants import LEAST, Array, SharedConstants

LARGE_PAGE = 1 << 21
CHUNK = 1 << 26
"""Large arrays share chunks of this many bytes. What no array uses of a chunk takes no memory, except in its last page."""

Bytes = NDArray[np.uint8]


class NetworkMemory:
    """Memory for one network, which keeps what it gives until all of its arrays are gone. Mutable; several threads may use it.

    workspace: scratch memory that kernels share, because they run one after another; constants: those that other networks may share.
    """

    def __init__(self, workspace_bytes: int = 0, shared: SharedConstants | None = None) -> None:
        """shared: the constants of other networks, to be used instead of equal ones."""
        self._lock = threading.Lock()
        self._left = _of_its_own(0)
        self._returned: list[Bytes] = []
        self._shared_constants = shared
        self.constants: list[Array] = []
        self.workspace = self.zeros((workspace_bytes,), "uint8")

    def zeros(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[np.generic]:
        """A new array of zeros whose data starts at a multiple of `ALIGNMENT` bytes. Those of less than `LEAST` bytes have memory of their own."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        room = _of_its_own(size) if size < LEAST else self._of_chunks(size)
        return room.view(dtype).reshape(shape)

    def shared(self, constant: Array) -> Array | None:
        """A constant of another network that has the same bytes, in the same shape; None if there is none."""
        found = self._shared_constants.equal(constant) if self._shared_constants is not None and constant.flags.c_contiguous else None
        if found is not None:
            self.constants.append(found)
        return found

    def offer(self, constant: Array) -> None:
        """Add a constant to those that other networks may share: it is not written to any more."""
        if self._shared_constants is not None and constant.nbytes >= LEAST:
            self.constants.append(constant)

    def complete(self, constant: Array) -> Array:
        """A constant that was written to an array of `zeros`, or an equal one of another network; then the array's memory becomes another one's."""
        found = self.shared(constant)
        if found is None:
            self.offer(constant)
            return constant
        with self._lock:
            self._returned.append(constant.reshape(-1).view(np.uint8))
        return found

    def _of_chunks(self, size: int) -> Bytes:
        """Memory that was given back, the next bytes of the present chunk, or those of a new one."""
        with self._lock:
            for place, room in enumerate(self._returned):
                if room.nbytes >= size:
                    del self._returned[place]
                    room[:size] = 0
                    return room[:size]
            if size > self._left.nbytes:
                self._left = _chunk(size)
            room, self._left = self._left[:size], self._left[aligned(size) :]
        return room


def _of_its_own(size: int) -> Bytes:
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]


def _chunk(size: int) -> Bytes:
    """At least `CHUNK` bytes in large pages, which the array keeps mapped; just `size` bytes where there are none, or too little address space."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            room = max(size, CHUNK)
            mapping = mmap.mmap(-1, room + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            mapping.madvise(mmap.MADV_HUGEPAGE)
            memory = np.frombuffer(mapping, np.uint8)
            begin = -memory.ctypes.data % LARGE_PAGE
            return memory[begin : begin + room]
    return _of_its_own(size)
