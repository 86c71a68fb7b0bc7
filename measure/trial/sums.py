"""Verifies an output by a few numbers: signed sums of blocks of its elements, compared with those of a reference on another machine.

In a block of B elements, x_i of the program and r_i of the reference, the sums are S_j = sum s_ji x_i, j from 0 to 11, with signs s_ji from the key.
In a correct program, each error e_i = x_i - r_i is at most b_i (`verify`), so two such sums differ by at most

    sum b_i + 2 B 2^-53 (M + M')    M, M': the sums of |x_i| and |r_i|, which bound the rounding of the sums themselves

Nearly always, all b_i equal one b. With B = 16, an error beyond 16 b is then detected: whatever the other errors are, the sum is off by 16 b or more for one
of the element's two signs, and each of the twelve sums draws that sign independently. So 1 in 4096 such blocks passes if the other errors are made to cancel
it; a single error never passes. If one element of a block may be off by more, so may the block. Reference outputs are computed in double: if a candidate's
have only float32, b is 2^-29 of the errors that matter, and blocks are large.

Non-finite elements are not summed; their kind and place are hashed instead. Integers are only hashed: they are exact or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.measure.trial.answer import OutputSums
from ansor.measure.trial.fill import generated, mix

COUNT = 12  # signed sums per block
BLOCK = 16  # elements, for outputs whose errors are as large as their bound
LARGE_BLOCK = 4096  # elements of a reference in double precision, for outputs of narrower dtypes
MOST_BLOCKS = 192  # of a reference: their sums fit into an answer of 64 KiB
_UNIT = 2.0**-53
_STEP = np.uint64(0x9E3779B97F4A7C15)
Sum = NDArray[np.float64]


def block_for(size: int, dtype: str, outputs: int = 1, most: int = MOST_BLOCKS) -> int:
    """Elements per block for a reference, computed in double precision, of one of `outputs` outputs, of that dtype."""
    least = LARGE_BLOCK if np.dtype(dtype).itemsize < 8 else BLOCK
    return max(least, -(-size // max(1, most // outputs)))


def sums_of(place: int, array: NDArray[np.generic], block: int, count: int, key: int) -> OutputSums:
    """What a trial program reports for an output with these elements."""
    flat = array.reshape(-1)
    keys = generated(key, flat.size)
    if flat.dtype.kind != "f":
        words = flat.view(f"u{flat.itemsize}").astype(np.uint64)
        none = np.empty(0)
        whole = int(np.add.reduce(mix(keys + (words + np.uint64(1)) * _STEP), dtype=np.uint64))
        return OutputSums(place, block, np.empty((0, count)), none, none.astype(np.uint64), whole)
    wide = flat.astype(np.float64)
    finite = np.isfinite(wide)
    kinds = np.where(np.isnan(wide), 2, np.where(wide > 0, 3, 4)).astype(np.uint64)  # index + 1
    marks = np.where(finite, np.uint64(0), mix(keys + kinds * _STEP))
    values = np.where(finite, wide, 0.0)
    starts = np.arange(0, flat.size, block)
    signed = [_by_block(np.where(keys >> np.uint64(j) & np.uint64(1) != 0, values, -values), starts) for j in range(count)]
    odd = np.add.reduceat(marks, starts) if flat.size else marks
    return OutputSums(place, block, np.stack(signed, axis=1) if flat.size else np.empty((0, count)), _by_block(np.abs(values), starts), odd)


def wrong_blocks(found: OutputSums, expected: OutputSums, size: int, bound: float | NDArray[np.float64], unsure: Sequence[int] = ()) -> list[int]:
    """The wrong blocks, if elements may be off by `bound` (one for each element, or one for all); [0] for a wrong hash. `unsure`: blocks not to compare.

    Raises ValueError if the sums are not of the same output.
    """
    if found.hash is not None or expected.hash is not None:
        return [] if found.hash == expected.hash else [0]
    if found.sums.shape != expected.sums.shape or found.block != expected.block:
        asked, given = (f"{one.sums.shape} in blocks of {one.block}" for one in (expected, found))
        raise ValueError(f"asked to compare sums of shape {asked}, with sums of shape {given}: they belong to other outputs")
    lengths = np.minimum(found.block, size - np.arange(len(found.sums)) * found.block)
    bounds = np.asarray(bound)
    within = lengths * bounds if bounds.ndim == 0 else _by_block(bounds.reshape(-1), np.arange(0, size, found.block))
    allowed = within + lengths * 2 * _UNIT * (found.magnitudes + expected.magnitudes)
    with np.errstate(invalid="ignore"):
        close = (np.abs(found.sums - expected.sums) <= allowed[:, None]).all(axis=1)
    wrong = ~close | (found.odd != expected.odd)
    wrong[list(unsure)] = False
    return [int(block) for block in np.flatnonzero(wrong)]


def unsure_blocks(reference: NDArray[np.generic], dtype: str, block: int) -> list[int]:
    """Blocks of a reference in double precision where a program in `dtype` may legitimately have other non-finite values: NaN, and overflows."""
    wide = np.asarray(reference, np.float64).reshape(-1)
    with np.errstate(over="ignore"):
        odd = np.isnan(wide) | (np.isfinite(wide) & ~np.isfinite(wide.astype(dtype)))
    return sorted({int(index) // block for index in np.flatnonzero(odd)})


def _by_block(values: Sum, starts: NDArray[np.int64]) -> Sum:
    return np.add.reduceat(values, starts) if values.size else values
