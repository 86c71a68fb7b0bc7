"""Measurements that all tuners share, and the templates that they are of."""

from collections.abc import Sequence
from pathlib import Path

import autotvm_tuners
import pytest
from autotvm_tuners import LAYER, OTHER_LAYER, BestSoFar, MeasuredOnce, curve

from ansor import autotvm
from ansor.autotvm import MeasureInput, MeasureResult
from ansor.compat.autotvm.local_measure import BuildResult


class Counting:
    """Measures nothing: configuration n takes n + 1 seconds, the fifth fails."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.asked: list[int] = []

    def set_task(self, task: autotvm.Task) -> None:
        return

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        return [BuildResult()] * len(measure_inputs)

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]) -> list[MeasureResult]:
        self.asked += [inp.config.index for inp in measure_inputs]
        return [MeasureResult((inp.config.index + 1.0,), 4 * (inp.config.index == 5), 0.5, 1.0) for inp in measure_inputs]

    def close(self) -> None:
        return


@pytest.fixture
def task() -> autotvm.Task:
    return autotvm.task.create("bench/matmul", (512, 512, 512))


def test_a_configuration_is_measured_once(task: autotvm.Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotvm, "LocalBuilder", Counting)
    monkeypatch.setattr(autotvm, "LocalRunner", Counting)
    once = MeasuredOnce(tmp_path / "build" / "table.log")
    first = curve(autotvm.GridSearchTuner(task, (3, 12)), once, 100)
    assert first.curve == [4.0] * 10 and once.measured == 10
    assert curve(autotvm.GridSearchTuner(task, (3, 12)), once, 100).curve == first.curve and once.measured == 10
    again = MeasuredOnce(tmp_path / "build" / "table.log")
    assert curve(autotvm.GridSearchTuner(task, (2, 13)), again, 100).curve == [3.0] * 12 and again.measured == 2
    assert sorted(again.costs(task)) == [3.0, 4.0, 5.0, *(float(cost) for cost in range(7, 15))]


def test_the_best_so_far() -> None:
    found = BestSoFar()
    tuner = autotvm.GridSearchTuner(autotvm.ConfigSpace())
    found(tuner, [], [MeasureResult((seconds,), 0, 0, 0) for seconds in (4.0, 5.0, 2.0)])
    found(tuner, [], [MeasureResult((1e9,), 4, 0, 0), MeasureResult((1.0,), 0, 0, 0)])
    assert found.curve == [4, 4, 2, 2, 1] and (found.after(2), found.after(5), found.after(99)) == (4, 1, 1)


def test_templates(task: autotvm.Task) -> None:
    assert task.config_space.dims == [10, 10] and task.flop == 2 * 512**3
    convolution, other = (autotvm.task.create("bench/conv2d", layer) for layer in (LAYER, OTHER_LAYER))
    assert len(convolution.config_space) == 12544 and list(convolution.config_space) == list(other.config_space)
    features = [autotvm.feature.get_itervar_feature_flatten(*one.instantiate(one.config_space.get(7000))) for one in (convolution, other)]
    assert len(features[0]) == len(features[1])
    assert set(autotvm_tuners.tuners(task, "itervar")) == {"GridSearch", "Random", "GA", "XGB"}
