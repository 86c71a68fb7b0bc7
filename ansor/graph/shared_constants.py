"""Constants of several networks of one model, each stored once.

Networks for several sizes of a model's inputs have the same weights, and often pack them alike. A constant is found by its bytes, so it does not matter how a
network came to it. Networks look constants up while they are made, and add theirs once they are complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ansor.support.forked import Locked

LEAST = 1 << 16
"""Constants of fewer bytes are not shared."""
SAMPLES = 64
"""How many bytes of a constant, spread over it, are compared before all of them are."""

Array = NDArray[np.generic]
_Key = tuple[int, bytes]


class SharedConstants(Locked):
    """Keeps no constant alive: one is forgotten with the last network that has it. Mutable; several threads may use it."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[_Key, list[weakref.ref[Array]]] = {}

    def add(self, constants: Iterable[Array]) -> None:
        """Offer a network's constants, which are never written to again, to other networks."""
        added = [(_key(_bits(one)), weakref.ref(one)) for one in constants]
        with self.lock:
            alive = ((key, [one for one in known if one() is not None]) for key, known in self._known.items())
            self._known = {key: known for key, known in alive if known}
            for key, one in added:
                self._known.setdefault(key, []).append(one)

    def find(self, array: Array) -> Array | None:
        """A constant with the same bytes, in the shape and dtype of a contiguous array; None if there is none."""
        if array.nbytes < LEAST:
            return None
        bits = _bits(array)
        with self.lock:
            known = [one() for one in self._known.get(_key(bits), [])]
        for one in {one.ctypes.data: one for one in known if one is not None}.values():  # several networks may have it already
            if np.array_equal(_bits(one), bits):
                return one.reshape(-1).view(array.dtype).reshape(array.shape)
        return None


def _bits(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _key(bits: NDArray[np.uint8]) -> _Key:
    return bits.nbytes, bits[:: max(1, bits.nbytes // SAMPLES)].tobytes()
