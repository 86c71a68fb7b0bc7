"""Tuning tasks together: the allocation of rounds, and the printed output."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest

from ansor.auto_scheduler import (
    ComputeDAG,
    LogEstimatedLatency,
    PrintTableInfo,
    RandomModel,
    RecordToFile,
    SearchTask,
    SketchPolicy,
    TaskScheduler,
    TaskSchedulerCallback,
    TuningOptions,
    load_records,
)
from ansor.errors import BudgetError, ScheduleError
from ansor.measure.record import load
from ansor.te import workloads
from tests.run.test_tuning import FakeMeasurer


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMeasurer:
    """Costs are the lengths of C texts."""
    measurer = FakeMeasurer()
    monkeypatch.setattr(TuningOptions, "measurer", lambda options, task: contextlib.nullcontext(measurer))
    return measurer


TASKS = [SearchTask(compute_dag=ComputeDAG(workloads.matmul(n, 8, 8)), target="llvm -threads=1", desc=f"{n} rows") for n in (4, 8, 12)]


def trials_in(log: Path) -> Counter[str]:
    """The number of trials per task, in the log and in the ansor record file next to it."""
    keys = {task.compute_dag.dag.key: task.workload_key for task in TASKS}
    ours = Path(f"{log}.ansor.jsonl")
    recorded = load(ours).records if ours.exists() else ()
    return Counter([inp.task.workload_key for inp, _ in load_records(log)] + [keys[record.workload] for record in recorded])


def test_task_scheduler_round_robin(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    options = TuningOptions(6, num_measures_per_round=1, verbose=0, measure_callbacks=[RecordToFile(log)])
    scheduler = TaskScheduler(TASKS, strategy="round-robin", callbacks=[])
    scheduler.tune(options, search_policy="sketch.random")
    assert list(trials_in(log).values()) == [2, 2, 2] and scheduler.task_cts == scheduler.task_trials == [2, 2, 2] and scheduler.ct == 6
    again = TaskScheduler(TASKS, strategy="round-robin", load_log_file=log, callbacks=[])
    again.tune(options, search_policy="sketch.random")
    assert list(trials_in(log).values()) == [4, 4, 4] and all(new <= old for new, old in zip(again.best_costs, scheduler.best_costs, strict=True))


def test_task_scheduler_gradient() -> None:
    scheduler = TaskScheduler(TASKS[:2], objective_func=lambda costs: costs[0], callbacks=[])
    scheduler.tune(TuningOptions(5, num_measures_per_round=1, verbose=0), search_policy="sketch.random")
    assert scheduler.task_cts == [4, 1] and scheduler.cur_score == scheduler.best_costs[0]


def test_callbacks_see_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "total.tsv").write_text("of an older run")

    class Seen(TaskSchedulerCallback):
        def __init__(self) -> None:
            self.rounds: list[tuple[str, int, int]] = []

        def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
            self.rounds.append(("before", task_id, task_scheduler.ct))

        def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
            self.rounds.append(("after", task_id, task_scheduler.ct))

    seen = Seen()
    scheduler = TaskScheduler(TASKS[:2], [1, 3], callbacks=[PrintTableInfo(), LogEstimatedLatency(tmp_path / "total.tsv"), seen], strategy="round-robin")
    scheduler.tune(TuningOptions(4, num_measures_per_round=1, verbose=0), search_policy=[SketchPolicy(task, RandomModel()) for task in TASKS[:2]])
    assert seen.rounds[:4] == [("before", 0, 0), ("after", 0, 1), ("before", 1, 1), ("after", 1, 2)]
    assert seen.rounds[4:] == [("before", 0, 2), ("after", 0, 3), ("before", 1, 3), ("after", 1, 4)]
    lines = (tmp_path / "total.tsv").read_text().splitlines()
    assert len(lines) == 4 and lines[0].split("\t")[2:] == ["EstimatedLatency(ms)", "N/A", "Trials", "1"] and lines[3].split("\t")[-1] == "4"
    assert lines[3].split("\t")[3] == f"{1e3 * (scheduler.best_costs[0] + 3 * scheduler.best_costs[1]):.3f}"
    printed = capsys.readouterr().out
    assert printed.count("| Latency (ms) | Speed (GFLOPS) | Trials |") == 4 and "4 rows |" in printed and "Next ID: 1" in printed


def test_invalid_arguments() -> None:
    with pytest.raises(ScheduleError, match="strategies are gradient, round-robin"):
        TaskScheduler(TASKS, strategy="luck")
    with pytest.raises(ScheduleError, match="give at least one"):
        TaskScheduler([])
    with pytest.raises(BudgetError, match="tune 3 tasks within 2 trials"):
        TaskScheduler(TASKS, callbacks=[]).tune(TuningOptions(2, verbose=0), search_policy="sketch.random")
    with pytest.raises(ScheduleError, match="policies are default, sketch.xgb, sketch.random"):
        TaskScheduler(TASKS, callbacks=[]).tune(TuningOptions(3, verbose=0), search_policy="sketch.luck")
    with pytest.raises(ScheduleError, match="give one for each"):
        TaskScheduler(TASKS, callbacks=[]).tune(TuningOptions(3, verbose=0), search_policy=[])


@pytest.mark.lightgbm
def test_a_saved_model_is_used(tmp_path: Path) -> None:
    from ansor.auto_scheduler import XGBModel

    XGBModel().save(tmp_path / "model.json")
    scheduler = TaskScheduler(TASKS[:1], load_model_file=tmp_path / "model.json", callbacks=[])
    scheduler.tune(TuningOptions(3, verbose=0), search_policy="sketch.xgb", per_task_early_stopping=2)
    assert scheduler.ct == 3
