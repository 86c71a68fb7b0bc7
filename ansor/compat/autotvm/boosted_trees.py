"""Boosted trees for the order, or the size, of labels: what XGBoost does for AutoTVM, done by LightGBM.

Sizes of the trees, step length and penalties are those of AutoTVM 0.9, `XGBoostCostModel`. Gradients are ours, so that both losses are trained alike, and the
ranking is by pairs within a group, as XGBoost's `rank:pairwise` is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.trees import import_lightgbm

if TYPE_CHECKING:
    import lightgbm

Row = NDArray[np.float64]
Gradient = tuple[Row, Row]
"""First and second derivatives of a loss, by sample."""

LOSSES = ("rank", "reg")
PAIRS = 4
"""How many others of its group each sample is compared with in a round."""

SMALLEST_HESSIAN = 1e-3
"""LightGBM guesses how many samples a side of a split has from hessians, and gives up where they vanish."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What trees are fitted to. features `[n, width]`; labels `[n]`, larger is better; groups `[n]`: ascending numbers of what may be compared with each
    other; margin `[n]`: what is predicted already."""

    features: NDArray[np.float32]
    labels: Row
    groups: NDArray[np.int64]
    margin: Row


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """rounds: trees at most; patience: rounds without a better `average_recall` of the best `top` samples, after which it ends, with the trees up to there."""

    loss: str
    rounds: int
    patience: int
    top: int
    seed: int
    threads: int = 1


def fit_trees(samples: Samples, boosting: Boosting, report: Callable[[int, float], None] = lambda trees, recall: None) -> lightgbm.Booster | None:
    """Trees whose sum, on top of the margin, orders (or is) the labels; None where there is nothing to tell samples apart by.

    `report` is told how many trees there are and the recall with them. Raises CostModelError where LightGBM does not load.
    """
    library = import_lightgbm("XGBTuner", otherwise="use GATuner")
    if len(samples.labels) < 2 or not (samples.features != samples.features[0]).any():
        return None
    gradient = _ranking(samples, boosting.seed) if boosting.loss == "rank" else _regression(samples)
    data = library.Dataset(samples.features, label=samples.labels, params=_parameters(boosting))
    booster: lightgbm.Booster = library.Booster(_parameters(boosting), data)
    scores, trees, best, best_trees = samples.margin.astype(np.float64), 0, -1.0, 0
    while trees < boosting.rounds and trees < best_trees + boosting.patience:
        if booster.update(fobj=lambda *_, scores=scores: gradient(scores)):
            break
        scores = scores + booster.predict(samples.features, raw_score=True, start_iteration=trees, num_iteration=1, num_threads=boosting.threads)
        trees += 1
        recall = average_recall(scores, samples.labels, samples.groups, boosting.top)
        report(trees, recall)
        if recall > best:
            best, best_trees = recall, trees
    return library.Booster(model_str=booster.model_to_string(num_iteration=best_trees)) if best_trees else None


def _regression(samples: Samples) -> Callable[[Row], Gradient]:
    return lambda scores: (scores - samples.labels, np.ones(len(scores)))


def _ranking(samples: Samples, seed: int) -> Callable[[Row], Gradient]:
    """Every call compares with others."""
    rng = np.random.default_rng(seed)
    starts = np.searchsorted(samples.groups, samples.groups, side="left")
    sizes = np.searchsorted(samples.groups, samples.groups, side="right") - starts

    def gradient(scores: Row) -> Gradient:
        others = starts[:, None] + (rng.random((len(scores), PAIRS)) * sizes[:, None]).astype(np.int64)
        return pairwise_gradient(scores, samples.labels, others)

    return gradient


def pairwise_gradient(scores: Row, labels: Row, others: NDArray[np.int64]) -> Gradient:
    """Of the mean over `others` `[n, pairs]` of log(1 + exp(-(difference of scores))), where the better label should score higher; equal ones do not count."""
    pairs = others.shape[1]
    better = np.sign(labels[:, None] - labels[others])
    wrong = 1 / (1 + np.exp(np.clip(better * (scores[:, None] - scores[others]), -30, 30)))
    slope, bend = -better * wrong / pairs, 2 * np.abs(better) * wrong * (1 - wrong) / pairs
    first = slope.sum(axis=1) - np.bincount(others.ravel(), slope.ravel(), len(scores))
    second = bend.sum(axis=1) + np.bincount(others.ravel(), bend.ravel(), len(scores))
    return first, np.maximum(second, SMALLEST_HESSIAN)


def average_recall(scores: Row, labels: Row, groups: NDArray[np.int64], top: int) -> float:
    """Mean over i = 1 ... top, and over groups, of how much of the best i is among the i that score highest. Of equal scores, the worse labels come first."""
    found = []
    for group in np.unique(groups):
        mine = groups == group
        by_score = np.lexsort((labels[mine], -scores[mine]))
        # The place of each among the labels, best first; equal labels have one place.
        place = np.searchsorted(np.sort(-labels[mine]), -labels[mine])[by_score]
        count = min(top, len(place))
        i = np.arange(1, count + 1)
        among = (place[:count][None, :] < i[:, None]) & (np.arange(count)[None, :] < i[:, None])
        found.append((among.sum(axis=1) / i).mean())
    return float(np.mean(found))


def _parameters(boosting: Boosting) -> dict[str, object]:
    return {
        "objective": "none", "max_depth": 3, "num_leaves": 8, "min_gain_to_split": 1e-4, "min_sum_hessian_in_leaf": 1.0, "learning_rate": 0.3, "lambda_l2": 1.0,
        "min_data_in_leaf": 1, "min_data_in_bin": 1, "max_bin": 255, "feature_pre_filter": False, "num_threads": boosting.threads, "deterministic": True,
        "force_col_wise": True, "seed": boosting.seed, "verbosity": -1,
    }  # fmt: skip
