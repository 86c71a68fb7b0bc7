"""Inputs of a task, generated from the seed and the argument's name: the same for every candidate, process and machine."""

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument
from ansor.support.bfloat16 import is_floating


def make_inputs(
    arguments: Sequence[Argument], *, seed: int = 0, ranges: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, NDArray[np.generic]]:
    """Logical arrays of all inputs and constants, by name.

    Floats are uniform in [-1, 1), signed integers in [-8, 8), unsigned ones in [0, 16), bools both; `ranges` sets
    another [low, high) for single arguments, so that index tensors stay in bounds.
    """
    ranges = ranges or {}
    return {
        argument.name: _make(argument, np.random.default_rng((seed, zlib.crc32(argument.name.encode()))), ranges)
        for argument in arguments
        if argument.role != "output"
    }


def _make(
    argument: Argument, generator: np.random.Generator, ranges: Mapping[str, tuple[float, float]]
) -> NDArray[np.generic]:
    dtype = np.dtype(argument.dtype)
    if is_floating(dtype):
        low, high = ranges.get(argument.name, (-1.0, 1.0))
        uniform = generator.random(argument.shape, dtype=np.float64 if dtype.itemsize == 8 else np.float32)
        return np.asarray(uniform * (high - low) + low).astype(dtype)
    default = {"i": (-8, 8), "u": (0, 16), "b": (0, 2)}[dtype.kind]
    low, high = ranges.get(argument.name, default)
    return np.asarray(generator.integers(int(low), int(high), argument.shape), dtype=dtype)
