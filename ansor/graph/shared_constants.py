"""Constants of several networks of one model, each stored once.

Networks for several sizes of a model's inputs have the same weights, and often pack them alike. A constant is found by its bytes, so it does not matter how a
network came to it. Networks look constants up while they are made, and add theirs once they are complete.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LEAST = 1 << 16
"""Constants of fewer bytes are not shared."""
SAMPLES = 64
"""How many bytes of a constant, spread over it, are compared before all of them are."""

Array = NDArray[np.generic]
_Key = tuple[int, bytes]


class SharedConstants:
    """Keeps no constant alive: one is forgotten with the last network that has it. Mutable; several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[_Key, dict[int, weakref.ref[Array]]] = {}  # by address

    def add(self, constants: Iterable[Array]) -> None:
        """Offer a network's constants, which are never written to again, to other networks."""
        with self._lock:
            for one in constants:
                self._known.setdefault(_key(_bits(one)), {})[one.ctypes.data] = weakref.ref(one)

    def equal(self, array: Array) -> Array | None:
        """A constant with the same bytes, in the shape and dtype of a contiguous array; None if there is none."""
        if array.nbytes < LEAST:
            return None
        bits = _bits(array)
        for known in self._alive(_key(bits)):
            if np.array_equal(_bits(known), bits):
                return known.reshape(-1).view(array.dtype).reshape(array.shape)
        return None

    def _alive(self, key: _Key) -> list[Array]:
        with self._lock:
            known = self._known.get(key, {})
            found = {place: one for place, held in known.items() if (one := held()) is not None}
            for place in known.keys() - found.keys():
                del known[place]
            return list(found.values())


def _bits(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _key(bits: NDArray[np.uint8]) -> _Key:
    return bits.nbytes, bits[:: max(1, bits.nbytes // SAMPLES)].tobytes()
