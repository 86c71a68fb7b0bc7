"""The cost model of XGBTuner: what it learns from trials and from logs."""

import importlib

import numpy as np
import pytest

from ansor.autotvm import ConfigEntity, MeasureResult
from ansor.compat.autotvm.xgboost_cost_model import XGBoostCostModel
from ansor.errors import ConfigError, CostModelError
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor
from tests.autotvm.gemm_task import GemmTask, measured, seconds

TASK = GemmTask()
POSSIBLE = [index for index in range(98) if seconds(TASK.config_space.get(index)) is not None]


def speed(index: int) -> float:
    found = seconds(TASK.config_space.get(index))
    return 0.0 if found is None else 1 / found


def agreement(model: XGBoostCostModel, indices: list[int]) -> float:
    """The share of correctly ordered pairs."""
    scores, truth = model.predict(indices), np.array([speed(index) for index in indices])
    better, higher = truth[:, None] > truth, scores[:, None] > scores
    return float((better & higher).sum() / better.sum())


@pytest.mark.lightgbm
@pytest.mark.parametrize("feature_type", ["itervar", "curve"])
@pytest.mark.parametrize("loss_type", ["rank", "reg"])
def test_the_model_generalises(feature_type: str, loss_type: str) -> None:
    model = XGBoostCostModel(TASK, feature_type, loss_type)
    assert not model.predict(POSSIBLE).any()
    told = POSSIBLE[::2]
    model.fit(told, [speed(index) for index in told], plan_size=16)
    assert agreement(model, told) > 0.95 and agreement(model, POSSIBLE[1::2]) > 0.8


@pytest.mark.lightgbm
def test_an_impossible_configuration_scores_below_all() -> None:
    model = XGBoostCostModel(TASK)
    model.fit(range(98), [speed(index) for index in range(98)], plan_size=16)
    impossible = [index for index in range(98) if index not in POSSIBLE]
    assert len(impossible) == 14 and np.isneginf(model.predict(impossible)).all() and np.isfinite(model.predict(POSSIBLE)).all()


@pytest.mark.lightgbm
def test_a_log_of_another_shape_helps() -> None:
    """fit_log, then fit on top."""
    base = XGBoostCostModel(TASK)
    log = [*measured(64, range(98)), *measured(64, range(98), name="dense"), *measured(64, range(98), target="llvm -mcpu=x")]
    assert not base.fit_log(log, plan_size=16, min_seed_records=2 * 84 + 1)
    assert base.fit_log(log, plan_size=16, min_seed_records=2 * 84)  # impossible ones have no features, "dense" is another template
    upper = XGBoostCostModel(TASK)
    upper.load_basemodel(base)
    assert agreement(upper, POSSIBLE) > 0.9  # has learned from the log
    upper.fit(POSSIBLE[:10], [speed(index) for index in POSSIBLE[:10]], plan_size=16)
    assert upper.base_model is base and agreement(upper, POSSIBLE) > 0.9
    alone = XGBoostCostModel(TASK)
    alone.fit(POSSIBLE[:10], [speed(index) for index in POSSIBLE[:10]], plan_size=16)
    assert agreement(alone, POSSIBLE) < agreement(upper, POSSIBLE)


@pytest.mark.lightgbm
def test_a_log_is_ignored_once_enough_is_measured() -> None:
    """The log contradicts the measurements."""
    wrong = [(inp, MeasureResult((1e-6 / result.mean_cost,), 0, 0.1, 1.0)) for inp, result in measured(64, POSSIBLE)]
    model, base = XGBoostCostModel(TASK), XGBoostCostModel(TASK)
    base.fit_log(wrong, plan_size=16, min_seed_records=10)
    model.load_basemodel(base)
    assert agreement(model, POSSIBLE) < 0.1
    for count, kept in (255, base), (256, None):
        told = (POSSIBLE * 4)[:count]
        model.fit(told, [speed(index) for index in told], plan_size=16)
        assert model.base_model is kept
    assert agreement(model, POSSIBLE) > 0.95


@pytest.mark.lightgbm
def test_features_of_other_lengths() -> None:
    """Some programs of a template have an additional loop."""

    class Task(GemmTask):
        def instantiate(self, config: ConfigEntity) -> tuple[Schedule, list[Tensor]]:
            s, args = super().instantiate(config)
            if config["order"].val == "inside":
                s[args[2]].split(s[args[2]].leaf_iter_vars[-1], factor=2)
            return s, args

    model = XGBoostCostModel(Task())
    model.fit(POSSIBLE[:40], [speed(index) for index in POSSIBLE[:40]], plan_size=16)  # those with fewer loops
    assert agreement(model, POSSIBLE[:40]) > 0.9 and np.isfinite(model.predict(POSSIBLE)).all()
    model.fit(POSSIBLE, [speed(index) for index in POSSIBLE], plan_size=16)
    assert agreement(model, POSSIBLE) > 0.9


@pytest.mark.lightgbm
def test_the_same_seed_gives_the_same_scores() -> None:
    found = []
    for seed in (1, 1, 2):
        model = XGBoostCostModel(TASK, seed=seed)
        model.fit(POSSIBLE[::3], [speed(index) for index in POSSIBLE[::3]], plan_size=16)
        found.append(model.predict(POSSIBLE).tolist())
    assert found[0] == found[1] != found[2]


def test_without_lightgbm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", fail)
    sentence = r"asked for XGBTuner; the LightGBM library does not load \(libgomp.*\): install lightgbm and libgomp1, or use GATuner"
    with pytest.raises(CostModelError, match=sentence):
        XGBoostCostModel(TASK).fit([20, 30], [1.0, 2.0], plan_size=16)


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="loss_type='mse'; types are rank, reg"):
        XGBoostCostModel(TASK, loss_type="mse")
