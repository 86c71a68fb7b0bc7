"""Searching with a model that knows all scores."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.autotvm import ConfigSpace
from ansor.compat.autotvm.sa_model_optimizer import SimulatedAnnealingOptimizer
from ansor.compat.autotvm.xgboost_cost_model import XGBoostCostModel
from ansor.errors import ConfigError


class Known:
    """Scores by a formula: digits should be 7, and a first digit of 9 is impossible. `shift` is added to all; `asked` lists all queries."""

    def __init__(self, space: ConfigSpace, shift: float = 0.0) -> None:
        self.space, self.shift, self.asked = space, shift, list[int]()

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> NDArray[np.float64]:
        self.asked += xs
        digits = np.array([self.space.point2knob(index) for index in xs])
        return np.where(digits[:, 0] == 9, -np.inf, self.shift - np.abs(digits - 7).sum(axis=1))


def space(*dims: int) -> ConfigSpace:
    made = ConfigSpace()
    for place, size in enumerate(dims):
        made.define_knob(f"k{place}", range(size))
    return made


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_finds_the_best_whatever_the_sign_of_scores(shift: float) -> None:
    where = space(*[10] * 5)
    found = SimulatedAnnealingOptimizer(where, n_iter=200).find_maximums(Known(where, shift), 12, [])
    scores = [Known(where).predict([index])[0] for index in found]
    assert found[0] == 77777 and len(set(found)) == 12 and scores == sorted(scores, reverse=True)
    assert scores[1:10] == [-1] * 9  # of the ten neighbours at distance one


def test_omits_excluded_and_impossible_configurations() -> None:
    where = space(10, 10)
    found = SimulatedAnnealingOptimizer(where).find_maximums(Known(where), 100, [77, 76, 0])
    assert set(found) == set(range(100)) - {77, 76, 0} - {10 * second + 9 for second in range(10)}


def test_scores_each_configuration_once() -> None:
    where = space(10, 10)
    model = Known(where)
    SimulatedAnnealingOptimizer(where).find_maximums(model, 10, [])
    assert sorted(model.asked) == sorted(set(model.asked))


def test_the_next_search_starts_where_the_last_ended() -> None:
    where = space(*[50] * 8)
    kept, fresh = (SimulatedAnnealingOptimizer(where, n_iter=3, persistent=persistent, parallel_size=64) for persistent in (True, False))
    firsts = []
    for optimizer in (kept, fresh):
        best = [max(Known(where).predict(optimizer.find_maximums(Known(where), 4, []))) for _ in range(3)]
        firsts.append(best)
    assert firsts[0][0] < firsts[0][1] < firsts[0][2] and firsts[1][2] < firsts[0][2]


def test_stops_when_the_space_is_exhausted() -> None:
    where = space(3, 3)
    model = Known(where)
    optimizer = SimulatedAnnealingOptimizer(where, n_iter=3)
    assert len(optimizer.find_maximums(model, 20, [])) == 9


def test_the_same_seed_gives_the_same_configurations() -> None:
    where = space(*[20] * 6)
    found = [SimulatedAnnealingOptimizer(where, n_iter=3, seed=seed).find_maximums(Known(where), 8, []) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("dims", [(), (1, 1)])
def test_a_space_of_one(dims: tuple[int, ...]) -> None:
    where = space(*dims)
    model = XGBoostCostModel(where, "knob")
    assert SimulatedAnnealingOptimizer(where).find_maximums(model, 3, []) == [0]


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="n_iter=5 generations of parallel_size=0 configurations"):
        SimulatedAnnealingOptimizer(space(3), n_iter=5, parallel_size=0)
