"""Buffers with guard bands, which detect writes outside them."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from ansor.measure.harness import Harness

BAND = 4096  # bytes on either side, filled with a pattern and checked after the run
FAR = 16 << 20  # bytes of address space beyond the bands that fault when touched


class GuardedBuffer:
    """`size` bytes, page-aligned, with a band on either side. Lives until the process ends: each candidate has its own.

    `number`: each buffer of a call has its own, which sets the pattern of its bands: data copied from one band to another then shows.
    """

    def __init__(self, harness: Harness, name: str, size: int, number: int = 0) -> None:
        self.name = name
        self.size = size
        self.address = harness.guarded(size, BAND, FAR)
        self._low = _bytes_at(self.address - BAND, BAND)
        self._high = _bytes_at(self.address + size, BAND)
        self._guard = np.resize(np.frombuffer(guard_word(number), np.uint8), BAND)
        self._low[...] = self._high[...] = self._guard

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The contents."""
        return _bytes_at(self.address, self.size)

    def view(self, dtype: str) -> NDArray[np.generic]:
        """The contents as a 1-D array."""
        return self.bytes.view(dtype)

    def damage(self) -> str:
        """A sentence about bytes written outside the buffer, '' if the bands are intact."""
        below, above = np.flatnonzero(self._low != self._guard), np.flatnonzero(self._high != self._guard)
        if above.size:
            return f"wrote past the end of {self.name!r} ({self.size} bytes), first at byte {self.size + int(above[0])}"
        if below.size:
            return f"wrote before the start of {self.name!r}, first at byte {int(below[0]) - BAND}"
        return ""

    @property
    def reach(self) -> tuple[int, int]:
        """First and last address + 1 of the buffer with its bands and the faulting space."""
        return self.address - BAND - FAR, self.address + self.size + BAND + 4096 + FAR


def guard_word(number: int) -> bytes:
    """The repeated word of a buffer's bands: NaN or large as a float, large as an integer. `arguments.h` has the same."""
    return (0x7FDA5A5A ^ (number % 64 + 1) * 0x00010101).to_bytes(4, "little")


def _bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    if not size:
        return np.empty(0, dtype=np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
