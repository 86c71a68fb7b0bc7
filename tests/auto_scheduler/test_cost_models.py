"""Cost models of states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansor.auto_scheduler import ComputeDAG, MeasureInput, MeasureResult, RandomModel, SearchTask, SketchPolicy, State, XGBModel, save_records
from ansor.compat.auto_scheduler.cost_models import features_of
from ansor.errors import CostModelError
from ansor.te import workloads


def sampled(task: SearchTask, count: int) -> list[State]:
    return SketchPolicy(task, params={"sample_init_min_population": count}).sample_initial_population()[:count]


def a_task() -> SearchTask:
    return SearchTask(compute_dag=ComputeDAG(workloads.matmul(10, 10, 4)), target="llvm -threads=1")


def test_random_model() -> None:
    task = a_task()
    states = sampled(task, 8)
    scores = RandomModel().predict(task, states)
    assert scores.shape == (8,) and len(set(scores.tolist())) == 8 and RandomModel().predict(task, []).shape == (0,)
    RandomModel().update([MeasureInput(task, states[0])], [MeasureResult([1.0], 0, "", 1.0, 1.0)])


@pytest.mark.lightgbm
def test_xgb_model(tmp_path: Path) -> None:
    """Trained on measurements, it ranks fast before slow; so do a saved model, and one trained on a log."""
    task = a_task()
    states = sampled(task, 24)
    costs = [1e-3 * (1 + len(str(task.compute_dag.replay(state).lowered)) / 1000 + 5 * ("vectorize" not in str(state))) for state in states]
    inputs, results = [MeasureInput(task, state) for state in states], [MeasureResult([cost], 0, "", 0.1, 1.0) for cost in costs]
    model = XGBModel()
    model.update(inputs, results)
    predicted = model.predict(task, states)
    wanted = min(costs) / np.array(costs)
    assert np.sqrt(np.mean((predicted - wanted) ** 2)) <= 0.3
    save_records(tmp_path / "log.json", inputs, results)
    learned = XGBModel()
    learned.update_from_file(tmp_path / "log.json", 20)
    assert np.corrcoef(learned.predict(task, states), wanted)[0, 1] > 0.5
    model.save(tmp_path / "model.json")
    for again in (XGBModel(model_file=tmp_path / "model.json"), XGBModel()):
        again.load(tmp_path / "model.json")
        assert np.allclose(again.predict(task, states), predicted)
    with pytest.raises(CostModelError):
        XGBModel(model_file=tmp_path / "log.json")


def test_states_without_a_program_are_ignored() -> None:
    task = a_task()
    gpu = task.compute_dag.get_init_state()
    gpu.bind("C", gpu["C"].iters[0], "threadIdx.x")
    unfit = task.compute_dag.get_init_state()
    unfit.split("C", unfit["C"].iters[0], [None])
    model = RandomModel()
    model.update([MeasureInput(task, gpu), MeasureInput(task, unfit)], [MeasureResult([1.0], 0, "", 1.0, 1.0)] * 2)
    assert model.predict(task, [gpu, unfit]).tolist() == [-np.inf] * 2


def test_features_of_a_row_are_those_of_its_state() -> None:
    task = a_task()
    state = sampled(task, 1)[0]
    by_hand = state.copy()
    by_hand.pragma("C", by_hand["C"].iters[0], "auto_unroll_max_step$7")  # no row has this limit
    row, other = features_of(task, state), features_of(task, by_hand)
    assert row is not None and other is not None and row.width == other.width and row.count == other.count == 1
    assert len(row.rows) == len(other.rows) and (row.rows != other.rows).mean() < 0.2
