"""Tuning under TVM's API: what is logged, where the rest is kept, and how a run resumes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ansor import auto_scheduler
from ansor.auto_scheduler import (
    ApplyHistoryBest,
    ComputeDAG,
    EmptyPolicy,
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    PreloadMeasuredStates,
    PythonBasedMeasureCallback,
    PythonBasedModel,
    RandomModel,
    RecordToFile,
    SearchTask,
    SketchPolicy,
    State,
    TuningOptions,
    load_records,
    save_records,
)
from ansor.errors import AnsorError, BudgetError, RecordError, ScheduleError, TargetError
from ansor.measure.record import load
from ansor.te import workloads
from ansor.te.tensor import Tensor
from tests.auto_scheduler.declared import check_interpreted
from tests.run.test_tuning import FakeMeasurer

KEY = auto_scheduler.register_workload_tensors('["tuned matmul"]', workloads.matmul(16, 16, 8))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMeasurer:
    """Costs are the lengths of C texts."""
    measurer = FakeMeasurer()
    monkeypatch.setattr(TuningOptions, "measurer", lambda options, task: contextlib.nullcontext(measurer))
    return measurer


def task_of(threads: int = 2) -> SearchTask:
    return SearchTask(workload_key=KEY, compute_dag=ComputeDAG(workloads.matmul(16, 16, 8)), target=f"llvm -threads={threads}")


def options(trials: int, *callbacks: object, verbose: int = 0) -> TuningOptions:
    return TuningOptions(trials, num_measures_per_round=8, verbose=verbose, measure_callbacks=callbacks)  # type: ignore[arg-type]  # callbacks


def test_a_run_is_logged_and_its_best_program_applied(fake: FakeMeasurer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, log = task_of(), tmp_path / "folder" / "log.json"
    state = task.tune(options(24, RecordToFile(log), verbose=1), SketchPolicy(task, RandomModel()))
    lines, ours = list(load_records(log)), load(f"{log}.ansor.jsonl").records
    assert len(lines) + len(ours) == len(fake.jobs) == state.trials == 24 and lines and ours
    assert capsys.readouterr().out.count("cannot be expressed in TVM's log format: kept in") == 1
    assert {inp.task.recorded for inp, _ in lines} == {task.recorded} and all(result.error_no == 0 for _, result in lines)
    best = min([result.mean_cost for _, result in lines] + [record.cost for record in ours])
    assert state.cost == best
    program, args = task.apply_best(log)
    check_interpreted(task.compute_dag, program)
    found = len(task.local.source(program, ()).text.replace("kernel", "candidate0"))
    assert args == task.compute_dag.tensors and found == pytest.approx(best * 1e9, abs=3)  # candidates are numbered
    assert "for " in task.print_best(log, "loops") and "void main" not in task.print_best(log, "source") and task.print_best(log)
    with pytest.raises(TargetError, match="modes are schedule, loops, source"):
        task.print_best(log, "cuda")
    check_interpreted(task.compute_dag, task.compute_dag.replay(lines[0][0].state).sketch)


def test_known_programs_are_not_measured_again(fake: FakeMeasurer, tmp_path: Path) -> None:
    task, log = task_of(), tmp_path / "log.json"
    task.tune(options(10, RecordToFile(log)), SketchPolicy(task, RandomModel()))
    policy = SketchPolicy(task, RandomModel(), init_search_callbacks=[PreloadMeasuredStates(log)])
    assert len(policy.search_of.known) == 10
    state = task.tune(options(10, RecordToFile(log)), policy)
    assert state.trials == 10 and len({job.source.text.replace(job.source.entry, "") for job in fake.jobs}) > 15
    rows = [json.dumps(json.loads(line)["i"][1]) for line in log.read_text().splitlines()]
    assert len(set(rows)) == len(rows)
    assert not SketchPolicy(task, init_search_callbacks=[PreloadMeasuredStates(tmp_path / "nowhere")]).search_of.known


def test_failures_are_logged_as_tvm_does(fake: FakeMeasurer, tmp_path: Path) -> None:
    fake.fail_every = 2
    task, log = task_of(), tmp_path / "log.json"
    task.tune(options(12, RecordToFile(log)), SketchPolicy(task, RandomModel()))
    failures = [result for _, result in load_records(log) if result.error_no]
    assert failures and all(result.costs == (1e10,) and result.error_no == MeasureErrorNo.RUNTIME_DEVICE for result in failures)


def test_callbacks_receive_what_states_can_express(fake: FakeMeasurer) -> None:
    class Seen(PythonBasedMeasureCallback):
        def __init__(self) -> None:
            self.pairs: list[tuple[MeasureInput, MeasureResult]] = []

        def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
            assert isinstance(policy, SketchPolicy)
            self.pairs += zip(inputs, results, strict=True)

    task, seen = task_of(), Seen()
    task.tune(options(12, seen), SketchPolicy(task, RandomModel()))
    assert 0 < len(seen.pairs) <= 12 and all(isinstance(inp.state, State) and inp.task is task for inp, _ in seen.pairs)


def test_a_custom_model_predicts_and_learns(fake: FakeMeasurer) -> None:
    class Mine(PythonBasedModel):
        def __init__(self) -> None:
            self.scored: list[int] = []
            self.taught: list[MeasureInput] = []

        def predict(self, task: SearchTask, states: Sequence[State]) -> list[float]:
            self.scored.append(len(states))
            return [float(str(state).count("vectorize")) for state in states]

        def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
            self.taught += inputs

    task, mine = task_of(1), Mine()
    policy = SketchPolicy(task, mine, {"evolutionary_search_population": 32, "evolutionary_search_num_iters": 1})
    state = policy.search(options(8))
    assert state.trials == 8 and mine.scored and len(mine.taught) == 8 and all(isinstance(one.state, State) for one in mine.taught)


def test_options_are_checked() -> None:
    assert TuningOptions().num_measures_per_round == 64 and TuningOptions(builder=LocalBuilder(), runner=LocalRunner()).verbose == 1
    for wrong in ({"builder": "ndk"}, {"runner": "rpc"}, {"runner": LocalBuilder()}):
        with pytest.raises(TargetError, match="programs are measured on this machine"):
            TuningOptions(**wrong)
    with pytest.raises(BudgetError):
        task_of().tune(options(-1), SketchPolicy(task_of()))


def test_no_trials_measure_nothing(fake: FakeMeasurer, tmp_path: Path) -> None:
    task, log = task_of(), tmp_path / "log.json"
    state = task.tune(options(0, RecordToFile(log)))
    assert state.best is None and not fake.jobs and not log.exists()
    with pytest.raises(RecordError, match="cannot be read|has none that runs"):
        task.apply_best(log)


def test_the_best_of_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task, log = task_of(), tmp_path / "log.json"
    fast, slow = task.compute_dag.get_init_state(), task.compute_dag.get_init_state()
    fast.parallel("C", fast["C"].iters[0])
    slow.split("C", slow["C"].iters[0], [4])
    gpu = task.compute_dag.get_init_state()
    gpu.bind("C", gpu["C"].iters[0], "threadIdx.x")
    pairs = [(slow, 3.0), (fast, 2.0), (gpu, 1.0)]
    save_records(log, [MeasureInput(task, state) for state, _ in pairs], [MeasureResult([cost], 0, "", 1, 1) for _, cost in pairs])
    assert task.apply_best(log)[0].steps == task.compute_dag.replay(fast).sketch.steps and "which processors do not have" in caplog.text
    half = SearchTask(compute_dag=ComputeDAG(workloads.matmul(8, 16, 8)), target="llvm -threads=2")
    with pytest.raises(RecordError):
        half.apply_best(log)
    with ApplyHistoryBest(log) as best:
        assert task.apply_best()[0].steps == task.apply_best(log)[0].steps and best.query("llvm", KEY) == fast and best.query("cuda", KEY) is None
        with pytest.raises(RecordError):
            half.apply_best()
        with ApplyHistoryBest([]):
            assert task.apply_best()[0].steps  # from the enclosing context
    with pytest.raises(RecordError, match="outside of any ApplyHistoryBest"):
        task.apply_best()
    assert ApplyHistoryBest(load_records(log), n_lines=1).query("llvm", KEY) == slow


def test_programs_of_other_sizes_count_on_request(tmp_path: Path) -> None:
    @auto_scheduler.register_workload("sized matmul", override=True)
    def sized(n: int) -> list[Tensor]:
        return workloads.matmul(n, 16, 16)

    log = tmp_path / "log.json"
    small = SearchTask(func="sized matmul", args=(16,), target="llvm")
    state = small.compute_dag.get_init_state()
    state.split("C", state["C"].iters[0], [4])
    save_records(log, [MeasureInput(small, state)], [MeasureResult([1.0], 0, "", 1, 1)])
    large = SearchTask(func="sized matmul", args=(32,), target="llvm")
    with pytest.raises(RecordError):
        large.apply_best(log)
    check_interpreted(large.compute_dag, large.apply_best(log, include_compatible=True)[0])
    assert ApplyHistoryBest(log, include_compatible=True).best(large).cost == 2.0


def test_tasks_of_one_run_have_one_target() -> None:
    from ansor.compat.auto_scheduler.tune import run

    searches = [SketchPolicy(task_of(threads)).search_of for threads in (1, 2)]
    with pytest.raises(TargetError, match="give all of them one target"):
        run(searches, options(4), RandomModel())


def test_removed_names_say_what_to_use() -> None:
    for gone in (auto_scheduler.auto_schedule, auto_scheduler.create_task):
        with pytest.raises(ScheduleError, match="which TVM removed: use"):
            gone("matmul")
    assert isinstance(auto_scheduler.LocalRPCMeasureContext(repeat=2).runner, LocalRunner)


@pytest.mark.compiler
def test_with_a_compiler_and_a_clock(tmp_path: Path) -> None:
    """Search, log and apply; the results are correct."""
    task, log = SearchTask(workload_key=KEY, compute_dag=ComputeDAG(KEY), target="llvm -threads=1"), tmp_path / "log.json"
    runner = LocalRunner(number=1, repeat=2, min_repeat_ms=0)
    task.tune(TuningOptions(6, num_measures_per_round=3, verbose=0, runner=runner, measure_callbacks=[RecordToFile(log)]), SketchPolicy(task, seed=1))
    EmptyPolicy(task).search(TuningOptions(1, verbose=0, runner=runner, measure_callbacks=[RecordToFile(log)]))
    assert list(load_records(log))[-1][0].state.transform_steps == ()
    sch, args = task.apply_best(log)
    kernel = auto_scheduler.build(sch, args, task.target)
    a, b = (np.random.default_rng(k).random(shape, "float32") for k, shape in enumerate(((16, 8), (8, 16))))
    assert np.allclose(kernel(a, b), a @ b, rtol=1e-5)


@pytest.mark.parametrize(("policy", "name"), [(None, "the package's model"), (RandomModel(), "the given model")])
def test_the_last_line_names_the_model(policy: RandomModel | None, name: str, fake: FakeMeasurer, capsys: pytest.CaptureFixture[str]) -> None:
    task = task_of()
    task.tune(options(2, verbose=1), None if policy is None else SketchPolicy(task, policy))
    assert f"chosen by {name}" in capsys.readouterr().out


def test_a_run_stops_without_progress(fake: FakeMeasurer) -> None:
    task = task_of()
    task.tune(TuningOptions(40, early_stopping=1, num_measures_per_round=2, verbose=0), SketchPolicy(task, RandomModel()))
    assert len(fake.jobs) < 40


def test_broken_logs_raise_our_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsorError):
        RecordToFile(tmp_path / "file" / "log.json")
