"""What lowering passes to the cost model: the feature rows of a batch of programs.

A program has one feature row per statement. Programs of one batch may have different numbers of statements, so one matrix holds
the rows of all programs and `segment` says which program each row belongs to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class FeatureRows:
    """Feature rows of `count` programs.

    `rows` is float32 `[r, features]`; `segment` is int64 `[r]`, ascending, the index `0 .. count-1` of the program a row
    belongs to. A program may have no rows. `prior` is float64 `[r]`, the logarithm of an estimate of each row's time in any unit,
    or None: with it, a model has to learn only what the estimate gets wrong. Raises ValueError for other shapes or an unsorted
    segment.
    """

    rows: NDArray[np.float32]
    segment: NDArray[np.int64]
    count: int
    prior: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.segment.shape != (len(self.rows),):
            raise ValueError(
                f"feature rows need a matrix and one program index per row; found shapes {self.rows.shape} and "
                f"{self.segment.shape}: pass rows [r, features] and segment [r]"
            )
        if self.prior is not None and self.prior.shape != self.segment.shape:
            raise ValueError(f"feature rows need one prior per row; found {self.prior.shape} for {self.segment.shape}: pass prior [r]")
        if not len(self.segment):
            return
        if self.segment[0] < 0 or self.segment[-1] >= self.count or bool((np.diff(self.segment) < 0).any()):
            raise ValueError(
                f"feature rows of {self.count} programs need ascending program indices 0..{self.count - 1}; found "
                f"{self.segment[0]}..{self.segment[-1]}: sort the rows by program"
            )

    @property
    def width(self) -> int:
        """Number of features in a row."""
        return int(self.rows.shape[1])

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per-row `values` `[r]` added up per program: `[count]`; 0 for a program without rows."""
        return np.bincount(self.segment, weights=values, minlength=self.count).astype(np.float64, copy=False)

    def lengths(self) -> NDArray[np.int64]:
        """Number of rows of each program: `[count]`."""
        return np.bincount(self.segment, minlength=self.count).astype(np.int64, copy=False)

    def take(self, programs: NDArray[np.int64]) -> "FeatureRows":
        """The programs with these indices, in this order (repeats allowed), renumbered from 0."""
        lengths = self.lengths()
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[programs] if self.count else np.zeros(0, np.int64)
        taken = lengths[programs]
        segment = np.repeat(np.arange(len(programs), dtype=np.int64), taken)
        first = np.cumsum(taken) - taken
        index = np.arange(int(taken.sum()), dtype=np.int64) + np.repeat(starts - first, taken)
        return FeatureRows(self.rows[index], segment, len(programs), None if self.prior is None else self.prior[index])

    def prior_logs(self) -> NDArray[np.float64]:
        """The prior of each row, 0 without one: `[r]`."""
        return np.zeros(len(self.segment)) if self.prior is None else self.prior


def join(parts: Sequence[FeatureRows]) -> FeatureRows:
    """All programs of `parts`, in order, as one batch. ValueError when there is no part or their widths differ."""
    widths = {part.width for part in parts}
    if len(widths) != 1:
        raise ValueError(
            f"asked to join {len(parts)} batches of feature rows; found row widths {sorted(widths)}: "
            "join batches of one feature version"
        )
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(part.count for part in parts)])
    segment = np.concatenate([part.segment + offset for part, offset in zip(parts, first[:-1], strict=True)])
    prior = np.concatenate([part.prior_logs() for part in parts]) if any(part.prior is not None for part in parts) else None
    return FeatureRows(np.concatenate([part.rows for part in parts]), segment, int(first[-1]), prior)
