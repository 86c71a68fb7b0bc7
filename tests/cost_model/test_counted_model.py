import sys

import numpy as np
import pytest

from ansor.cost_model.counted_model import ENOUGH, CountedModel
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import first_model, pretrained
from ansor.cost_model.training_set import TrainingSet
from ansor.ir.feature_rows import FeatureRows
from ansor.targets.prior import BOARDS

pytestmark = [pytest.mark.compiler, pytest.mark.lightgbm]
ROUND = 16


def programs(seed: int, count: int = ROUND) -> FeatureRows:
    generator = np.random.default_rng(seed)
    return FeatureRows(generator.uniform(0, 8, (count, WIDTH)).astype(np.float32), np.arange(count), count, generator.uniform(0, 1, count))


def test_networks_judge_until_enough_programs_were_counted_and_then_trees() -> None:
    model, networks, trees, seen = first_model(BOARDS, "instructions"), pretrained(BOARDS), None, TrainingSet()
    assert isinstance(model, CountedModel)
    unseen = programs(1000)
    for number in range(ENOUGH // ROUND + 2):
        np.testing.assert_array_equal(model.predict(unseen), (trees or networks).predict(unseen))
        np.testing.assert_array_equal(model.opinions(unseen), networks.opinions(unseen))
        round_ = programs(number), np.exp(programs(number).rows[:, 0].astype(np.float64)), np.full(ROUND, number % 3)
        model.update(*round_)
        if trees is not None:
            trees.update(*round_)
            continue
        networks.update(*round_)
        seen.add(*round_)
        if len(seen) == ENOUGH:
            trees = LightGBMModel(0, informed=True, known=seen)
    assert trees is not None and isinstance(model, NetworkModel) and model.fitted


def test_without_the_library_of_trees_networks_judge_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    model, networks = first_model(BOARDS, "instructions"), pretrained(BOARDS)
    costs = np.random.default_rng(0).uniform(1, 2, 2 * ENOUGH)
    for one in (model, networks):
        one.update(programs(0, 2 * ENOUGH), costs, np.zeros(2 * ENOUGH, np.int64))
    np.testing.assert_array_equal(model.predict(programs(1)), networks.predict(programs(1)))
