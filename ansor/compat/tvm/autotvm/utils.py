"""`tvm.autotvm.utils`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.compat.tvm.auto_scheduler.utils import get_func_name as get_func_name
from ansor.compat.tvm.topi.utils import get_const_int as get_const_int
from ansor.compat.tvm.topi.utils import get_const_tuple as get_const_tuple
from ansor.errors import ArgumentError

T = TypeVar("T")


def get_rank(values: NDArray[np.generic]) -> NDArray[np.intp]:
    """The rank of each value in descending order: 0 for the largest."""
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[np.argsort(-np.asarray(values, dtype=np.float64))] = np.arange(len(values))
    return ranks


def sample_ints(low: int, high: int, m: int) -> list[int]:
    """`m` different integers from `low` to `high`, exclusive. Raises ArgumentError if there are not enough."""
    if m > high - low:
        raise ArgumentError(f"asked for {m} different integers from {low} to {high}; only {max(high - low, 0)} exist: ask for fewer")
    return random.sample(range(low, high), m)


def pool_map(func: Callable[[T], NDArray[np.generic]], args: Sequence[T], batch_size: int, verbose: bool = False, pool: object = None) -> NDArray[np.generic]:
    """Apply the function to every argument, and return one array. Runs in this process: `batch_size`, `verbose` and `pool` are ignored."""
    return np.array([func(arg) for arg in args])
