"""Metrics of scores, as TenSet defines them, over the programs of one task.

`labels` are best_seconds / seconds of each program (1 = best, 0 = failed); `scores` are a model's predictions.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rmse(labels: Floats, scores: Floats) -> float:
    """Root of the mean squared difference; 0 for no programs."""
    return float(np.sqrt(np.mean((labels - scores) ** 2))) if len(labels) else 0.0


def pairwise_accuracy(labels: Floats, scores: Floats) -> float:
    """Share of pairs i < j for which (score_i > score_j) agrees with (label_i > label_j); 0.5 for fewer than two programs."""
    if len(labels) <= 1:
        return 0.5
    first, second = np.triu_indices(len(labels), k=1)
    return float(np.mean((scores[first] > scores[second]) == (labels[first] > labels[second])))


def peak(labels: Floats, scores: Floats, k: int) -> float:
    """TenSet's peak score@k: mean over n = 1..k of (best label among the n best scored) / (best label), in [0, 1].

    k beyond the number of programs repeats the last value. 1 if there is no valid program, as nothing
    was missed. Equal scores keep their order.
    """
    if not len(labels) or labels.max() <= 0:
        return 1.0
    reached = np.maximum.accumulate(labels[np.argsort(-scores, kind="stable")])
    return float(np.mean(reached[np.minimum(np.arange(k), len(labels) - 1)]) / labels.max())


def rank_correlation(labels: Floats, scores: Floats) -> float:
    """Spearman's, in [-1, 1]: 1 for the same order, -1 for the opposite one; equal values share their mean rank. 0 if all are equal."""
    if len(labels) < 2:
        return 0.0
    a, b = (_ranks(values) - (len(labels) - 1) / 2 for values in (labels, scores))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 0.0


def _ranks(values: Floats) -> Floats:
    """Ranks from 0 for the smallest; equal values share their mean rank."""
    _, member, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts + 1) / 2)[member]
    return ranks
