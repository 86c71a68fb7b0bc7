"""Every cost model passes the same class: derive from it and say how to make the model."""

import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from ansor.cost_model.base import CostModel
from ansor.cost_model.fit_network import NetworkOptions, fit_network
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.metrics import pairwise_accuracy
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.random_model import RandomModel
from ansor.cost_model.saved import load_model
from ansor.cost_model.torch_model import TorchModel
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows


def programs(count: int, seed: int = 0, width: int = 12) -> tuple[FeatureRows, np.ndarray]:
    """Programs of 1 to 3 statements whose time is the sum over statements of a bowl over the first features."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 4, count)
    segment = np.repeat(np.arange(count), lengths)
    rows = generator.uniform(0, 8, (len(segment), width)).astype(np.float32)
    cost = 0.1 + (rows[:, 0] - 5) ** 2 + 2 * np.abs(rows[:, 1] - 3) + rows[:, 2]
    features = FeatureRows(rows, segment, count)
    return features, features.sums(cost.astype(np.float64)) * 1e-4


class CostModelContract:
    learns = True
    informed = False
    """Whether it knows something before an update."""

    def make(self) -> CostModel:
        raise NotImplementedError

    def test_not_fitted_before_an_update_and_predicts_finite_scores(self) -> None:
        model = self.make()
        features, _ = programs(10)
        assert model.fitted == self.informed
        assert model.predict(features).shape == (10,)
        assert np.isfinite(model.predict(features)).all()

    def test_ranks_unseen_programs(self) -> None:
        model = self.make()
        features, seconds = programs(300)
        model.update(features, seconds, np.zeros(300, np.int64))
        unseen, truth = programs(200, seed=1)
        scores = model.predict(unseen)
        assert scores.dtype == np.float64 and np.isfinite(scores).all()
        assert model.fitted == self.learns
        if self.learns:
            assert pairwise_accuracy(truth.min() / truth, scores) > 0.8

    def test_learns_from_failures(self) -> None:
        model = self.make()
        features, seconds = programs(200)
        failed = features.rows[np.searchsorted(features.segment, np.arange(200)), 3] > 4
        model.update(features, np.where(failed, np.nan, seconds), np.zeros(200, np.int64))
        scores = model.predict(features)
        assert np.isfinite(scores).all()
        if self.learns:
            assert scores[failed].mean() < scores[~failed].mean() / 2

    @pytest.mark.parametrize("seconds", [[np.nan], [-np.inf, np.nan], [0.0, -1.0], [1.0, np.nan], []])
    def test_few_or_failed_programs_are_no_accident(self, seconds: list[float]) -> None:
        model = self.make()
        features, _ = programs(len(seconds))
        model.update(features, np.array(seconds), np.zeros(len(seconds), np.int64))
        assert np.isfinite(model.predict(features)).all()
        assert model.fitted == (self.informed or self.learns and bool(np.nansum(seconds) == 1.0))

    def test_constant_features_are_no_accident(self) -> None:
        model = self.make()
        features = FeatureRows(np.ones((20, 12), np.float32), np.arange(20), 20)
        model.update(features, np.linspace(1, 2, 20), np.zeros(20, np.int64))
        assert np.isfinite(model.predict(features)).all()

    def test_program_without_rows_and_no_program(self) -> None:
        model = self.make()
        features, seconds = programs(20)
        model.update(features, seconds, np.zeros(20, np.int64))
        assert np.isfinite(model.predict(FeatureRows(features.rows[:1], np.zeros(1, np.int64), 3))).all()
        nothing = FeatureRows(np.zeros((0, 12), np.float32), np.zeros(0, np.int64), 0)
        assert model.predict(nothing).shape == (0,)

    def test_same_seed_and_updates_give_the_same_scores(self) -> None:
        scores = []
        for _ in range(2):
            model = self.make()
            for seed in range(2):
                features, seconds = programs(40, seed)
                model.update(features, seconds, np.full(40, seed))
            scores.append(model.predict(programs(30, 9)[0]))
        np.testing.assert_array_equal(scores[0], scores[1])

    def test_times_are_compared_within_a_task_only(self) -> None:
        model = self.make()
        features, seconds = programs(200)
        tasks = np.arange(200) % 2
        model.update(features, np.where(tasks == 1, seconds * 1000, seconds), tasks)
        if self.learns:
            unseen, truth = programs(200, seed=1)
            assert pairwise_accuracy(truth.min() / truth, model.predict(unseen)) > 0.75

    def test_saved_model_predicts_the_same_and_learns_on(self, tmp_path: Path) -> None:
        model = self.make()
        features, seconds = programs(60)
        model.update(features, seconds, np.zeros(60, np.int64))
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert type(loaded) is type(model) and loaded.fitted == model.fitted
        if self.learns:
            np.testing.assert_array_equal(loaded.predict(features), model.predict(features))
        more, more_seconds = programs(60, seed=2)
        loaded.update(more, more_seconds, np.zeros(60, np.int64))
        assert np.isfinite(loaded.predict(more)).all()

    def test_shapes_that_disagree_are_refused(self) -> None:
        features, seconds = programs(10)
        with pytest.raises(CostModelError, match="10 programs"):
            self.make().update(features, seconds[:9], np.zeros(10, np.int64))

    def test_other_width_is_refused(self) -> None:
        if not self.learns:
            return
        model = self.make()
        features, seconds = programs(10)
        model.update(features, seconds, np.zeros(10, np.int64))
        with pytest.raises(CostModelError, match="7 features"):
            model.predict(programs(10, width=7)[0])


class TestRandomModel(CostModelContract):
    learns = False

    def make(self) -> CostModel:
        return RandomModel(seed=3)


@pytest.mark.torch
@pytest.mark.compiler
class TestNetworkModel(CostModelContract):
    informed = True

    def make(self) -> CostModel:
        return NetworkModel(trained_networks())


@lru_cache
def trained_networks() -> tuple[Network, ...]:
    """Of a few programs; what makes others fail, they never met."""
    options = NetworkOptions(units=32, epochs=40, batch=2, dropout=0.0)
    return tuple(fit_network([programs(150, seed) for seed in range(10, 14)], replace(options, seed=member)) for member in range(2))


@pytest.mark.lightgbm
class TestLightGBMModel(CostModelContract):
    def make(self) -> CostModel:
        return LightGBMModel(seed=3)


@pytest.mark.torch
class TestTorchModel(CostModelContract):
    def make(self) -> CostModel:
        return TorchModel(seed=3, steps=200)


@pytest.mark.lightgbm
def test_growth_spares_training() -> None:
    model = LightGBMModel(growth=0.5)
    features, seconds = programs(40)
    model.update(features, seconds, np.zeros(40, np.int64))
    before = model.predict(features)
    more, more_seconds = programs(10, seed=1)
    model.update(more, more_seconds, np.zeros(10, np.int64))
    np.testing.assert_array_equal(model.predict(features), before)
    model.update(more, more_seconds, np.zeros(10, np.int64))
    model.update(more, more_seconds, np.zeros(10, np.int64))
    assert not np.array_equal(model.predict(features), before)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99}', '{"format": 1, "kind": "oracle"}'])
def test_foreign_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "model").write_text(text)
    with pytest.raises(CostModelError, match="asked to load the cost model"):
        load_model(tmp_path / "model")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CostModelError, match="no readable one"):
        load_model(tmp_path / "absent")


@pytest.mark.lightgbm
def test_without_the_library_trees_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(CostModelError, match="libgomp1"):
        LightGBMModel()


def test_importing_models_imports_neither_library() -> None:
    script = (
        "import sys, ansor.cost_model.base, ansor.cost_model.lightgbm_model, ansor.cost_model.torch_model;"
        "assert 'torch' not in sys.modules and 'lightgbm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
