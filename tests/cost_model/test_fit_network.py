from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.cost_model.fit_network import NetworkOptions, fit_network
from ansor.ir.feature_rows import FeatureRows

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
OPTIONS = NetworkOptions(units=32, epochs=60, batch=4, dropout=0.0)


def task(number: int, count: int = 60) -> tuple[FeatureRows, NDArray[np.float64]]:
    """Programs of one or two statements; how slow a task is in all, and by what its estimate is off, says nothing of others."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(1, 3, count)
    segment = np.repeat(np.arange(count), lengths)
    rows = rng.uniform(-1, 1, (len(segment), 6)).astype(np.float32)
    prior = rng.normal(0, 0.3, len(segment)) + number
    features = FeatureRows(rows, segment, count, prior)
    return features, features.sums(np.exp(prior + 1.5 * np.abs(rows[:, 0]) - rows[:, 1])) * 10.0**-number


def in_order(logs: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    apart = np.log(seconds)[:, None] - np.log(seconds)[None, :]
    right = (logs[:, None] - logs[None, :]) * apart > 0
    return float(right[apart != 0].mean())


def test_what_the_estimate_gets_wrong_is_learned_from_many_tasks_at_once() -> None:
    network = fit_network([task(number) for number in range(8)], OPTIONS)
    for number in range(8, 11):
        features, seconds = task(number)
        prior = in_order(np.log(features.sums(np.exp(features.prior_logs()))), seconds)
        found = in_order(np.log(features.sums(np.exp(features.prior_logs() + network(features.rows)))), seconds)
        assert found > 0.95 > 0.8 > prior


def test_a_failed_program_is_ranked_last() -> None:
    tasks = []
    for number in range(6):
        features, seconds = task(number)
        first = features.rows[np.searchsorted(features.segment, np.arange(features.count))]
        tasks.append((features, np.where(first[:, 2] > 0, np.inf, seconds)))
    network = fit_network(tasks, OPTIONS)
    features, seconds = tasks[0]
    logs = np.log(features.sums(np.exp(features.prior_logs() + network(features.rows))))
    assert np.median(logs[np.isinf(seconds)]) > 0.4 + np.median(logs[np.isfinite(seconds)])


def test_the_same_seed_gives_the_same_network_and_touches_no_global_state() -> None:
    import torch

    before = torch.random.get_rng_state(), torch.get_num_threads()
    tasks, rows = [task(number) for number in range(3)], task(9)[0].rows
    one, same, other = (fit_network(tasks, NetworkOptions(units=16, epochs=2, batch=2, seed=seed))(rows) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert torch.equal(before[0], torch.random.get_rng_state()) and before[1] == torch.get_num_threads()


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a task"):
        fit_network([], OPTIONS)


def test_a_column_that_never_varied_is_learned_when_training_goes_on() -> None:
    """As the number of threads, where the first programs ran on one."""
    varies = np.array([1, 1, 1, 1, 1, 0], np.float32)
    constant = [(replace(features, rows=features.rows * varies), seconds) for features, seconds in map(task, range(8))]
    begun = fit_network(constant, OPTIONS)
    rows = task(8)[0].rows
    changed = rows.copy()
    changed[:, 5] = -3.0
    assert begun.layers.inputs.scale[5] == 0 and np.array_equal(begun(rows), begun(changed))
    slower = [(features, seconds * features.sums(np.exp(features.rows[:, 5]))) for features, seconds in map(task, range(8))]
    further = fit_network(slower, OPTIONS, begun)
    assert np.array_equal(further.layers.inputs.scale[:5], begun.layers.inputs.scale[:5]) and further.layers.inputs.scale[5] > 0
    assert np.median(further(rows) - further(changed)) > 0.3
