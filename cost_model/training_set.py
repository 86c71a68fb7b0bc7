"""All measured programs given to a model, and their labels and weights for training."""

import numpy as np
from numpy.typing import NDArray

from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows, join

SLOWEST = float(np.log(64.0))
"""Log slowness of a failed program, and the maximum for a valid one: beyond 64 times the best, all are equally useless."""

FAILURE_WEIGHT = 0.5
"""Weight of a failed program, so that the model learns to avoid it (a weight of 0 would teach nothing)."""

SLOW_WEIGHT = 0.3
"""Weight of a valid program that is infinitely slow; one as fast as the best weighs 1. Ranking the fast ones matters."""

LIMIT = 30.0
"""Row logs are clipped to plus and minus this, so that no exponential overflows."""

TINY = 1e-12
"""Keeps logarithms and divisions finite for a program without rows."""


def means(values: NDArray[np.float64], weights: NDArray[np.float64], tasks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted mean of `values` `[n]` over each task, `[tasks]`; 0 for a task without weight. Tasks count from 0."""
    count = int(tasks.max(initial=-1)) + 1
    sums, totals = np.bincount(tasks, weights * values, count), np.bincount(tasks, weights, count)
    return sums / np.where(totals > 0, totals, 1.0)


def scores(row_logs: NDArray[np.float64], features: FeatureRows) -> NDArray[np.float64]:
    """1 / (sum over a program's rows of exp(row log)), `[n]`; 0 for a program without rows."""
    slowness = features.sums(np.exp(np.clip(row_logs, -LIMIT, LIMIT)))
    return np.where(slowness > 0, 1 / np.maximum(slowness, TINY), 0.0)


def estimated_scores(features: FeatureRows) -> NDArray[np.float64]:
    """Scores by the prior alone, `[n]`."""
    return scores(features.prior_logs(), features)


class TrainingSet:
    """Grows by `add`; labels are recomputed on demand, because a new best program of a task changes them all."""

    def __init__(self) -> None:
        self._parts: list[FeatureRows] = []
        self._seconds = np.zeros(0)
        self._tasks = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._seconds)

    @property
    def width(self) -> int | None:
        """The number of features of a row; None while the set is empty."""
        return self._parts[0].width if self._parts else None

    @property
    def any_valid(self) -> bool:
        """Whether at least one program ran."""
        return bool(np.isfinite(self._seconds).any())

    def add(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """Append measured programs; times that are not finite and positive count as failures."""
        times = np.asarray(seconds, dtype=np.float64)
        owners = np.asarray(tasks, dtype=np.int64)
        if times.shape != (features.count,) or owners.shape != (features.count,):
            raise CostModelError(
                f"asked to learn from {features.count} programs; found {times.shape} times and {owners.shape} task "
                "numbers: pass one of each per program"
            )
        if self._parts and self._parts[0].width != features.width:
            raise CostModelError(
                f"asked to learn from rows of {features.width} features; found earlier rows of "
                f"{self._parts[0].width}: use one feature version"
            )
        if not features.count:
            return
        valid = np.isfinite(times) & (times > 0)
        self._parts.append(features)
        self._seconds = np.concatenate([self._seconds, np.where(valid, times, np.inf)])
        self._tasks = np.concatenate([self._tasks, owners])

    def valid(self) -> NDArray[np.bool_]:
        """Whether each program ran, `[n]`."""
        return np.isfinite(self._seconds)

    def members(self) -> NDArray[np.int64]:
        """The task of each program, `[n]`, counted from 0."""
        _, member = np.unique(self._tasks, return_inverse=True)
        return member

    def features(self) -> FeatureRows:
        """Rows of all programs so far, in order of `add`."""
        whole = join(self._parts)
        self._parts = [whole]
        return whole

    def labels(self) -> NDArray[np.float64]:
        """best_seconds_of_task / seconds, `[n]`, in (0, 1]; 0 for a failed program."""
        member = self.members()
        best = np.full(int(member.max(initial=-1)) + 1, np.inf)
        np.minimum.at(best, member, self._seconds)
        labels = np.zeros(len(self))
        valid = np.isfinite(self._seconds)
        labels[valid] = best[member[valid]] / self._seconds[valid]
        return labels

    def slowness(self) -> NDArray[np.float64]:
        """log(seconds / best_seconds_of_task), `[n]`, in [0, SLOWEST]; SLOWEST for a failed program."""
        return -np.log(np.maximum(self.labels(), np.exp(-SLOWEST)))

    def shifted(self, row_logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Row logs `[r]` of `features()`, shifted per task so that its programs' totals match their slowness on average."""
        features = self.features()
        totals = np.log(np.maximum(features.sums(np.exp(np.clip(row_logs, -LIMIT, LIMIT))), TINY))
        weights = np.where(self.valid(), self.weights(), 1e-3)
        member = self.members()
        return row_logs - means(totals - self.slowness(), weights, member)[member][features.segment]

    def weights(self) -> NDArray[np.float64]:
        """Weight of each program in the loss, `[n]`, in [SLOW_WEIGHT, 1]."""
        labels = self.labels()
        return np.where(labels > 0, SLOW_WEIGHT + (1 - SLOW_WEIGHT) * labels, FAILURE_WEIGHT)
