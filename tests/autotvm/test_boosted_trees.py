"""Trees that order labels, and the measure of how well."""

import numpy as np
import pytest

from ansor.compat.autotvm.boosted_trees import Boosting, Samples, average_recall, fit_trees, pairwise_gradient

ONE = np.zeros(8, dtype=np.int64)


def samples(labels: np.ndarray, groups: np.ndarray, margin: np.ndarray | None = None) -> Samples:
    rows = np.random.default_rng(0).random((len(labels), 3)).astype(np.float32)
    rows[:, 1] = labels
    return Samples(rows, labels, groups, np.zeros(len(labels)) if margin is None else margin)


def boosting(loss: str, rounds: int = 100, patience: int = 20) -> Boosting:
    return Boosting(loss=loss, rounds=rounds, patience=patience, top=16, seed=3)


def test_recall_of_an_order() -> None:
    labels = np.arange(8, dtype=np.float64)
    assert average_recall(labels, labels, ONE, 8) == 1
    # The best of 4 come last: of the best 1 and 2 none is among the first so many, of the best 3 two are, of all 4 all.
    assert average_recall(-labels[:4], labels[:4], ONE[:4], 4) == pytest.approx((0 + 0 + 2 / 3 + 1) / 4)
    assert average_recall(np.zeros(4), labels[:4], ONE[:4], 4) == pytest.approx((0 + 0 + 2 / 3 + 1) / 4)  # no order is the worst one
    assert average_recall(np.array([3.0, 2, 9, 8]), np.array([1.0, 0, 0, 1]), np.array([0, 0, 1, 1]), 1) == 0.5  # of two groups


def test_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    scores, labels, others = rng.random(6), np.array([0.0, 1, 2, 2, 1, 0]), rng.integers(0, 6, (6, 3))

    def loss(at: np.ndarray) -> float:
        better = np.sign(labels[:, None] - labels[others])
        return float((np.abs(better) * np.log1p(np.exp(-better * (at[:, None] - at[others])))).sum() / 3)

    first, second = pairwise_gradient(scores, labels, others)
    steps = np.eye(6) * 1e-5
    assert first == pytest.approx([(loss(scores + step) - loss(scores - step)) / 2e-5 for step in steps], abs=1e-6)
    assert (second > 0).all() and first.sum() == pytest.approx(0)


@pytest.mark.lightgbm
@pytest.mark.parametrize("loss", ["rank", "reg"])
def test_trees_learn_an_order(loss: str) -> None:
    labels = np.random.default_rng(1).random(60)
    found = samples(labels, np.zeros(60, dtype=np.int64))
    trees = fit_trees(found, boosting(loss))
    assert trees is not None
    scores = trees.predict(found.features, raw_score=True)
    assert average_recall(scores, labels, found.groups, 16) > 0.9
    assert (np.abs(scores - labels).max() < 0.2) == (loss == "reg")


@pytest.mark.lightgbm
def test_groups_are_ordered_each_by_itself() -> None:
    """The better group's programs all have the feature's lower values: only comparisons within a group find out that more is better."""
    labels, groups = np.tile(np.linspace(0, 1, 30), 2), np.repeat([0, 1], 30)
    rows = (labels + np.where(groups == 0, 0.0, -5.0))[:, None].astype(np.float32)
    trees = fit_trees(Samples(rows, labels, groups, np.zeros(60)), boosting("rank"))
    assert trees is not None
    scores = trees.predict(rows, raw_score=True)
    assert average_recall(scores, labels, groups, 16) > 0.8


@pytest.mark.lightgbm
def test_trees_end_with_the_last_that_helped() -> None:
    labels = np.random.default_rng(1).random(40)
    told: list[tuple[int, float]] = []
    trees = fit_trees(samples(labels, np.zeros(40, dtype=np.int64)), boosting("rank", 1000, 5), lambda count, recall: told.append((count, recall)))
    assert trees is not None
    best = max(recall for _, recall in told)
    first = next(count for count, recall in told if recall == best)
    assert trees.num_trees() == first and [count for count, _ in told] == list(range(1, first + 6))


@pytest.mark.lightgbm
def test_a_margin_that_is_right_leaves_little_to_learn() -> None:
    labels = np.linspace(0, 1, 40)
    trees = fit_trees(samples(labels, np.zeros(40, dtype=np.int64), labels.copy()), boosting("reg"))
    assert trees is None or np.abs(trees.predict(samples(labels, ONE).features, raw_score=True)).max() < 1e-3


@pytest.mark.lightgbm
def test_nothing_to_tell_samples_apart_by() -> None:
    labels = np.arange(4, dtype=np.float64)
    assert fit_trees(Samples(np.ones((4, 2), np.float32), labels, ONE[:4], np.zeros(4)), boosting("rank")) is None
    assert fit_trees(Samples(np.ones((1, 2), np.float32), labels[:1], ONE[:1], np.zeros(1)), boosting("rank")) is None
