from dataclasses import replace

import numpy as np
import pytest

from ansor.cost_model.fit_network import NetworkOptions
from ansor.cost_model.lightgbm_model import stage_model
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.trees import TreeOptions
from ansor.dataset.evaluate import quality
from ansor.dataset.examples import Examples
from ansor.dataset.operators import DatasetTask
from ansor.dataset.train import train_networks, train_trees
from ansor.ir.feature_rows import FeatureRows

pytestmark = pytest.mark.lightgbm
OPTIONS = TreeOptions(trees=40, learning_rate=0.2, leaves=15, smallest_leaf=5)


def task(number: int, count: int = 60) -> Examples:
    """Programs of one or two statements. A task's level, and the factor of its estimate's error, say nothing about other tasks."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(1, 3, count)
    segment = np.repeat(np.arange(count), lengths)
    rows = rng.uniform(-1, 1, (len(segment), 6)).astype(np.float32)
    prior = rng.normal(0, 0.3, len(segment)) + number
    times = np.exp(prior + 1.5 * np.abs(rows[:, 0]) - rows[:, 1])
    features = FeatureRows(rows, segment, count, prior)
    return Examples(DatasetTask("matmul", "blas", (("rows", number),), f"family {number}"), features, features.sums(times) * 10.0**-number)


def test_training_corrects_the_estimate_across_tasks() -> None:
    model = stage_model(train_trees([task(number) for number in range(8)], OPTIONS))
    unseen = [task(number) for number in range(8, 11)]
    by_estimate = quality(lambda features: 1 / features.sums(np.exp(features.prior_logs())), unseen)
    found = quality(model.predict, unseen)
    assert found.pairwise > 0.9 > by_estimate.pairwise + 0.1 and found.peak1 > by_estimate.peak1


def test_a_failed_program_is_ranked_last() -> None:
    tasks = [task(number) for number in range(6)]
    failing = [Examples(one.task, one.features, np.where(_first(one)[:, 2] > 0, np.inf, one.seconds)) for one in tasks]
    unseen = task(7)
    found = stage_model(train_trees(failing, OPTIONS)).predict(unseen.features)
    fails = _first(unseen)[:, 2] > 0
    assert np.median(found[~fails]) > 2 * np.median(found[fails])


def _first(one: Examples) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return one.features.rows[np.searchsorted(one.features.segment, np.arange(len(one)))]


def test_the_same_examples_give_the_same_trees() -> None:
    one, other = (train_trees([task(number) for number in range(3)], OPTIONS) for _ in range(2))
    rows = task(5).features.rows
    np.testing.assert_array_equal(one.row_logs(rows), other.row_logs(rows))
    assert len(one.trees) == 3 and not np.array_equal(one.sums[0](rows), one.sums[1](rows))


@pytest.mark.torch
@pytest.mark.compiler
def test_each_network_omits_other_tasks() -> None:
    options = NetworkOptions(units=32, epochs=60, batch=4, dropout=0.0)
    networks, same = (train_networks([task(number) for number in range(8)], options) for _ in range(2))
    unseen = [task(number) for number in range(8, 11)]
    assert quality(NetworkModel(networks).predict, unseen).pairwise > 0.9
    rows = unseen[0].features.rows
    assert len(networks) == 3 and not np.array_equal(networks[0](rows), networks[1](rows))
    for one, other in zip(networks, same, strict=True):
        np.testing.assert_array_equal(one(rows), other(rows))


def test_operators_of_networks_count_twice_beside_drawn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("ansor.dataset.train.fit_network", lambda part, options, start: asked.append(len(part)))
    monkeypatch.setattr("ansor.dataset.train.family_number", lambda one, purpose: 255)  # nothing is left out
    alone = [task(number, 3) for number in range(4)]
    drawn = replace(alone[0], task=replace(alone[0].task, kind="drawn"))
    train_networks(alone)
    train_networks([*alone, drawn])
    assert asked == [4, 4, 4, 9, 9, 9]
