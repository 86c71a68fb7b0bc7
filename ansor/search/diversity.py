"""Picks good and diverse programs.

A model trained on a few programs ranks near-copies of one program highest; measuring sixteen of them teaches no more than measuring one. On the
synthetic matrix product, spreading the picks is worth twenty more trials.
"""

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows

REACH = 0.5
"""Distance, in standard deviations of the shortlist's features, at which two programs count as less alike."""


def spread(features: FeatureRows, scores: NDArray[np.float64], order: NDArray[np.int64], first: NDArray[np.int64],
           wanted: int, strength: float) -> NDArray[np.int64]:
    """Indices of up to `wanted` of these programs: `first`, then greedily by score minus likeness to the picked ones.

    `order`: best first, decides ties. A program with the same features as a picked one loses `strength` powers of e of its
    score; likeness falls off as a Gaussian of REACH. Exact repeats of features, most likely the same machine code, come last.
    """
    described = _described(features)
    # A score may be zero or negative (it comes from any model): only its distance to the best matters here.
    value = np.log(np.maximum(scores / max(float(scores.max(initial=0.0)), 1e-300), 1e-6))
    likeness = np.zeros(len(scores))
    available = np.ones(len(scores), bool)
    picked: list[int] = []
    queue = first.tolist()
    while len(picked) < min(wanted, len(order)):
        worth = value - strength * likeness - 20.0 * (likeness > 1 - 1e-12)
        index = queue.pop(0) if queue else int(order[np.argmax(np.where(available, worth, -np.inf)[order])])
        picked.append(index)
        available[index] = False
        squared = np.mean((described - described[index]) ** 2, axis=1)
        likeness = np.maximum(likeness, np.exp(-squared / (2 * REACH**2)))
    return np.array(picked, np.int64)


def _described(features: FeatureRows) -> NDArray[np.float64]:
    """Each program as the standardised sum of its rows, `[n, features]`."""
    total = np.zeros((features.count, features.width))
    np.add.at(total, features.segment, features.rows)
    deviation = total.std(axis=0)
    varies = deviation > 1e-9 * (1 + np.abs(total).max(axis=0, initial=0.0))
    kept = total[:, varies]
    return (kept - kept.mean(axis=0)) / deviation[varies] if kept.size else np.zeros((features.count, 1))
