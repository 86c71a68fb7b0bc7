"""The values that devices fill arguments with, in NumPy: the same bits as from `fill.h`. Each element is computed independently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument

DEFAULTS = {"f": (-1.0, 1.0), "i": (-8, 8), "u": (0, 16), "b": (0, 2)}
"""The default [low, high) of each kind of dtype, as in `ansor.measure.inputs`."""
_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Fill:
    """How one argument is filled. key: the generator's, from seed and name; low, high: floats in [low, high), integers in [int(low), int(high))."""

    dtype: str
    key: int
    low: float
    high: float

    @property
    def span(self) -> int:
        """How many integers to choose from, at least 1."""
        return max(1, int(self.high) - int(self.low))

    def array(self, shape: Sequence[int]) -> NDArray[np.generic]:
        """The logical array of that shape."""
        dtype = np.dtype(self.dtype)
        bits = generated(self.key, int(np.prod(shape, dtype=np.int64)))
        values = _floats(bits, dtype, self.low, self.high) if dtype.kind == "f" else _integers(bits, int(self.low), self.span)
        return values.astype(dtype).reshape(tuple(shape))


def fills_of(arguments: Sequence[Argument], seed: int, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Fill]:
    """The fills of all inputs and constants, by name."""
    return {
        one.name: Fill(one.dtype, key_of(seed, one.name), *ranges.get(one.name, DEFAULTS[np.dtype(one.dtype).kind]))
        for one in arguments if one.role != "output"
    }  # fmt: skip


def key_of(seed: int, name: str) -> int:
    """The generator's key of an argument: FNV-1a of its name, starting from the seed."""
    found = mixed(seed & _MASK)
    for byte in name.encode():
        found = (found ^ byte) * 0x100000001B3 & _MASK
    return mixed(found)


def mixed(bits: int) -> int:
    """SplitMix64's output for a state."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


def generated(key: int, count: int) -> NDArray[np.uint64]:
    """64 random bits for each of `count` elements."""
    return mix(np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP))


def mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mixed` for arrays."""
    bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return bits ^ bits >> np.uint64(31)


def uniform(bits: NDArray[np.uint64], itemsize: int) -> NDArray[np.float64]:
    """In [0, 1): 53 bits for doubles, 24 for anything narrower."""
    if itemsize == 8:
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (bits >> np.uint64(40)).astype(np.float64) * 2.0**-24


def _floats(bits: NDArray[np.uint64], dtype: np.dtype[np.generic], low: float, high: float) -> NDArray[np.generic]:
    with np.errstate(over="ignore"):
        values = (uniform(bits, dtype.itemsize) * (high - low) + low).astype(dtype)
    values[values.astype(np.float64) >= high] = low  # values that were rounded up
    return values


def _integers(bits: NDArray[np.uint64], low: int, span: int) -> NDArray[np.generic]:
    away = bits % np.uint64(span) if span >> 32 else (bits >> np.uint64(32)) * np.uint64(span) >> np.uint64(32)
    return (np.uint64(low & _MASK) + away).view(np.int64)
