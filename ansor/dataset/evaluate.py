"""How well scores rank the programs of unseen tasks, by the metrics of TenSet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.metrics import pairwise_accuracy, peak, rmse
from ansor.dataset.examples import Examples
from ansor.ir.feature_rows import FeatureRows

Score = Callable[[FeatureRows], NDArray[np.float64]]


@dataclass(frozen=True)
class Quality:
    """Means over tasks: root mean squared error of best / seconds, share of correctly ordered pairs, and best of the top 1 and top 5 relative to the best."""

    tasks: int
    rmse: float
    pairwise: float
    peak1: float
    peak5: float


def quality(score: Score, examples: Sequence[Examples]) -> Quality:
    """The quality of scores on these tasks. Each task counts equally, however many programs it has."""
    found = np.array([_of_task(score(one.features), one.seconds) for one in examples])
    error, pairwise, peak1, peak5 = found.mean(axis=0).tolist() if len(found) else (0.0, 0.0, 0.0, 0.0)
    return Quality(len(examples), error, pairwise, peak1, peak5)


def mean_quality(parts: Sequence[Quality]) -> Quality:
    """The mean quality over the tasks of several parts."""
    weights = np.array([part.tasks for part in parts], np.float64)
    values = np.array([[part.rmse, part.pairwise, part.peak1, part.peak5] for part in parts])
    error, pairwise, peak1, peak5 = (weights @ values / weights.sum()).tolist()
    return Quality(int(weights.sum()), error, pairwise, peak1, peak5)


def _of_task(scores: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float, float, float]:
    labels = np.where(np.isfinite(seconds), seconds.min() / seconds, 0.0)
    relative = scores / scores.max() if scores.max() > 0 else scores
    return rmse(labels, relative), pairwise_accuracy(labels, scores), peak(labels, scores, 1), peak(labels, scores, 5)
