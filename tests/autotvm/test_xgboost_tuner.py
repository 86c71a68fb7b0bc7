"""The tuner as a whole."""

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from ansor.autotvm import MeasureInput, MeasureResult, RandomTuner, Task
from ansor.compat.autotvm.base_tuner import Tuner
from ansor.compat.autotvm.sa_model_optimizer import SimulatedAnnealingOptimizer
from ansor.compat.autotvm.xgboost_tuner import XGBTuner
from ansor.errors import ConfigError
from tests.autotvm.gemm_task import GemmTask, measured
from tests.autotvm.test_sa_model_optimizer import space

DIMS = (10,) * 5


def cost(index: int) -> float:
    return 1.0 + sum(abs(digit - 7) for digit in space(*DIMS).point2knob(index))


def visited(tuner: Tuner, trials: int) -> list[int]:
    found: list[int] = []
    while tuner.has_next() and len(found) < trials:
        batch = tuner.next_batch(16)
        found += [config.index for config in batch]
        inputs = [MeasureInput("llvm", Task("x"), config) for config in batch]
        tuner.update(inputs, [MeasureResult((cost(config.index),), 0, 0, 0) for config in batch])
    return found


@pytest.mark.lightgbm
def test_beats_chance() -> None:
    def short(seed: int) -> XGBTuner:
        return XGBTuner(space(*DIMS), 32, "knob", optimizer=SimulatedAnnealingOptimizer(space(*DIMS), n_iter=50, parallel_size=64, seed=seed), seed=seed)

    learned = median(min(map(cost, visited(short(seed), 128))) for seed in range(3))
    assert learned + 1 < median(min(map(cost, visited(RandomTuner(space(*DIMS), seed=seed), 128))) for seed in range(3))


@pytest.mark.lightgbm
@pytest.mark.parametrize("loss_type, ratio", [("rank", None), ("reg", None), ("rank", 2.0)])
def test_visits_each_once(loss_type: str, ratio: float | None) -> None:
    task = GemmTask()
    tuner = XGBTuner(task, 16, "itervar", loss_type, diversity_filter_ratio=ratio, seed=1)
    found: list[int] = []
    while tuner.has_next():
        batch = [config.index for config in tuner.next_batch(16)]
        found += batch
        tuner.update(*map(list, zip(*measured(64, batch), strict=True)))
    assert sorted(found) == list(range(98)) and tuner.train_ct == 6


@pytest.mark.lightgbm
def test_impossible_ones_come_last() -> None:
    task = GemmTask()
    tuner = XGBTuner(task, 10)
    tuner.load_history(measured(64, range(98)), min_seed_records=80)
    assert all(task.config_space.get(index)["tile_x"].size[-1] != 1 for index in tuner.trials) and len(tuner.trials) == 10
    assert tuner.cost_model.base_model is not None  # type: ignore[attr-defined]  # of this model
    tuner = XGBTuner(task, 10)
    tuner.load_history(measured(64, range(98)), min_seed_records=85)
    assert not tuner.trials


@pytest.mark.lightgbm
def test_the_same_seed_gives_the_same_configurations_in_any_process() -> None:
    program = "\n".join((
        "from tests import conftest",
        "from tests.autotvm.test_xgboost_tuner import *",
        "print(visited(XGBTuner(space(*DIMS), 16, 'knob', seed=5), 40))",
    ))  # fmt: skip
    here = visited(XGBTuner(space(*DIMS), 16, "knob", seed=5), 40)
    command, root = [sys.executable, "-c", program], Path(__file__).parents[2]
    there = subprocess.run(command, cwd=root, env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(here)


def test_it_has_tvms_import_path() -> None:
    from ansor import autotvm
    from ansor.autotvm.tuner import GATuner, Tuner
    from ansor.autotvm.tuner import XGBTuner as imported

    assert imported is autotvm.tuner.XGBTuner is autotvm.XGBTuner is XGBTuner and autotvm.tuner.Tuner is Tuner and autotvm.tuner.GATuner is GATuner


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="optimizer='ga'; give 'sa', or an object with find_maximums"):
        XGBTuner(space(3), feature_type="knob", optimizer="ga")
    with pytest.raises(ConfigError, match="give a task, or feature_type='knob'"):
        XGBTuner(space(3))
