"""A run of several targets: what each one gets, finds, reports and leaves behind, beside runs of a single one. Boards are fakes."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.artifact import LIBRARY
from ansor.cost_model.random_model import RandomModel
from ansor.errors import AnsorError, AnsorWarning, ArgumentError, DeviceError, MeasureError
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.record import load
from ansor.run import tuning
from ansor.run.budget import Budget
from ansor.run.keywords import RunOptions
from ansor.run.options import SearchOptions
from ansor.run.reporter import NoView, Reporter, quiet
from ansor.run.scoring_model import NamedModel
from ansor.run.session import tuned
from ansor.run.states import Progress, TaskState
from ansor.support.termination import Terminated
from ansor.targets.base import parse_target
from ansor.targets.unit import INSTRUCTIONS, Unit, ticks
from ansor.tasks.task import SearchTask
from ansor.te import workloads

pytestmark = pytest.mark.compiler
ONE, TWO = (str(parse_target(f"cpu -threads={threads}")) for threads in (1, 2))
TASKS = [SearchTask(workloads.matmul, (16, size, 16), target) for size, target in ((16, ONE), (16, TWO), (32, TWO), (48, TWO), (32, ONE))]
OF_ONE, OF_TWO = [TASKS[0], TASKS[4]], TASKS[1:4]
TICKS = ticks(1e6)


class Board:
    """Counts letters of programs. `before`: called with the number of each job, from 1; it may raise, or return a failure."""

    alone, form = False, LIBRARY

    def __init__(self, name: str, unit: Unit = INSTRUCTIONS, before: Callable[[int], Failure | None] = lambda number: None) -> None:
        self.name, self.model, self.unit, self.before, self.jobs, self.closed = name, f"model of {name}", unit, before, 0, False

    def run(self, job: Job) -> Observation | Failure:
        self.jobs += 1
        failure = self.before(self.jobs)
        return Observation((float(len(job.artifact.source.text)),), self.unit) if failure is None else failure

    def close(self) -> None:
        self.closed = True


def dies(number: int) -> Failure | None:
    if number > 3:
        raise DeviceError("the board is dead")
    return None


@pytest.fixture(autouse=True)
def guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are chosen at random, each target's by a generator of its own."""
    monkeypatch.setattr(tuning, "scoring_model", lambda *_, **__: NamedModel(RandomModel(0), "chance", "chance"))


def run(
    trials: int, devices: Mapping[str, Board] | Board, records: Path | None = None, tasks: Sequence[SearchTask] = TASKS,
    lines: list[str] | None = None, heard: Callable[[Progress], None] = quiet,
) -> list[TaskState]:  # fmt: skip
    asked = RunOptions(Budget(trials), SearchOptions(0), records, devices=devices)
    return tuned(tasks, None, asked, Reporter(report=quiet if lines is None else lines.append, on_progress=heard))


def pair(**of_two: Callable[[int], Failure | None]) -> dict[str, Board]:
    return {ONE: Board("a"), TWO: Board("b", TICKS, **of_two)}


def rows(path: Path, target: str) -> list[tuple[str, object, tuple[int, ...]]]:
    """The programs of a target in a file, in order."""
    return [(one.workload, one.sketch, one.row) for one in load(path).records if one.target.startswith(target)]


def test_targets_share_the_trials_by_their_tasks_and_states_come_in_the_order_of_tasks(tmp_path: Path) -> None:
    devices, seen = pair(), list[Progress]()
    states = run(31, devices, tmp_path / "r.jsonl", heard=seen.append)
    assert [state.task for state in states] == TASKS and all(state.best is not None for state in states)
    assert [sum(state.trials for state in states if str(state.task.target) == target) for target in (ONE, TWO)] == [12, 19]
    assert [state.unit for state in states] == [INSTRUCTIONS, TICKS, TICKS, TICKS, INSTRUCTIONS]
    found = load(tmp_path / "r.jsonl").records
    assert {(one.device, one.unit) for one in found if one.target.startswith(ONE)} == {("model of a", INSTRUCTIONS)}
    assert {(one.device, one.unit) for one in found if one.target.startswith(TWO)} == {("model of b", TICKS)} and len(found) == 31
    assert all(one.unit == (INSTRUCTIONS if str(one.task.target) == ONE else TICKS) == one.latest.unit for one in seen)
    assert max(one.trials for one in seen if str(one.task.target) == ONE) == 12 and [one.total.trials for one in seen] == list(range(1, 32))
    assert all(board.closed for board in devices.values())


def test_each_target_gets_the_programs_of_a_run_of_its_own(tmp_path: Path) -> None:
    run(50, pair(), tmp_path / "both.jsonl")
    run(20, Board("a"), tmp_path / "one.jsonl", OF_ONE)
    run(30, Board("b", TICKS), tmp_path / "two.jsonl", OF_TWO)
    assert rows(tmp_path / "both.jsonl", ONE) == rows(tmp_path / "one.jsonl", ONE)
    assert rows(tmp_path / "both.jsonl", TWO) == rows(tmp_path / "two.jsonl", TWO)
    assert rows(tmp_path / "both.jsonl", ONE) != rows(tmp_path / "both.jsonl", TWO)


def test_boards_of_several_targets_work_at_the_same_time() -> None:
    together = threading.Barrier(2)

    def meet(number: int) -> Failure | None:
        if number == 1:
            together.wait(100)
        return None

    run(10, {ONE: Board("a", before=meet), TWO: Board("b", TICKS, before=meet)})
    assert not together.broken


def test_a_run_continues_each_target_from_one_file(tmp_path: Path) -> None:
    path, lines, devices = tmp_path / "r.jsonl", list[str](), pair()
    run(10, pair(), path)
    states = run(20, devices, path, lines=lines)
    assert [devices[target].jobs for target in (ONE, TWO)] == [4, 6] and sum(state.trials for state in states) == 20
    assert len({*rows(path, ONE), *((*row, TWO) for row in rows(path, TWO))}) == 20
    assert f"{TWO}: matmul(16, 16, 16): continuing after 2 recorded trials" in lines
    assert not any("left out" in line for line in lines)


@pytest.mark.parametrize(
    ("before", "error", "said", "recorded"),
    [
        (dies, DeviceError, "the board is dead", 3),
        (lambda number: Failure("load", "no such library"), MeasureError, "the first 6 programs all fail in the same way", 0),
    ],
)
def test_a_target_that_ends_with_an_error_does_not_end_the_others(
    before: Callable[[int], Failure | None], error: type[AnsorError], said: str, recorded: int, tmp_path: Path
) -> None:
    path, lines, devices = tmp_path / "r.jsonl", list[str](), pair(before=before)
    with pytest.raises(error, match=said):
        run(50, devices, path, lines=lines)
    assert len(rows(path, ONE)) == 20 and len(rows(path, TWO)) == recorded
    assert sum(line.startswith(f"{TWO}: stopped, the other target goes on: ") and said in line for line in lines) == 1
    assert sum(state.trials for state in run(50, pair(), path)) == 50


def test_an_error_of_every_target_is_reported_and_the_first_one_raised() -> None:
    lines = list[str]()
    with pytest.raises(DeviceError, match="the board is dead"):
        run(50, {ONE: Board("a", before=dies), TWO: Board("b", TICKS, dies)}, lines=lines)
    assert sorted(line.partition(": stopped")[0] for line in lines if ": stopped" in line) == [ONE, TWO]
    assert [line.partition(": stopped")[2] for line in lines if ": stopped" in line][1] == ": the board is dead"


def test_ctrl_c_ends_all_targets_with_the_best_so_far(tmp_path: Path) -> None:
    seen, lines, devices = list[Progress](), list[str](), pair()

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len({one.task.target for one in seen}) == 2:
            raise KeyboardInterrupt

    states = run(1000, devices, tmp_path / "r.jsonl", lines=lines, heard=interrupt)
    kept = f"the best programs so far are used; the trials so far are in {tmp_path / 'r.jsonl'}: run this again to continue"
    assert [state.task for state in states] == TASKS and sum(state.trials for state in states) == len(seen) == len(load(tmp_path / "r.jsonl").records)
    assert sum(state.best is not None for state in states) >= 2 and lines[-1] == "stopped by on_progress: " + kept
    assert all(board.closed for board in devices.values())


class Interrupted(NoView):
    """Shows nothing, and is where a signal arrives after the first trial."""

    def __init__(self, why: type[BaseException]) -> None:
        self.why = why

    def update(self, progress: Progress) -> None:
        raise self.why


@pytest.mark.parametrize(("why", "name"), [(KeyboardInterrupt, "Ctrl-C"), (Terminated, "SIGTERM")])
def test_what_stopped_a_run_is_named_and_no_file_without_one(why: type[BaseException], name: str) -> None:
    lines = list[str]()
    tuned(TASKS, None, RunOptions(Budget(1000), devices=pair()), Reporter(Interrupted(why), lines.append))
    assert lines[-1] == f"stopped by {name}: the best programs so far are used; the trials are in no file, as no records= were given"


def test_a_script_that_shows_nothing_is_warned_of_ctrl_c_but_not_of_its_own_end(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    def board(number: int) -> Failure | None:
        if number == 3:
            raise KeyboardInterrupt
        return None

    records = tmp_path / "r.jsonl"
    with pytest.warns(AnsorWarning, match=f"stopped by Ctrl-C: .* the trials so far are in {records}: run this again to continue"):
        assert tuned(OF_ONE, None, RunOptions(Budget(50), records=records, devices=Board("a", before=board)), Reporter())[0].best is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(50, Board("a"), tasks=OF_ONE, heard=interrupt)


def test_ctrl_c_before_the_first_trial_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.TuningRun, "steps", interrupted)
    with pytest.raises(KeyboardInterrupt, match="before the first trial ended"):
        run(10, pair())


def test_what_building_disturbs_is_tuned_in_a_run_of_its_own() -> None:
    devices = pair()
    devices[ONE].alone = True
    with pytest.raises(DeviceError, match=f"building programs would disturb what a measures; tune for {ONE} in a run of its own"):
        run(10, devices)
    assert not any(board.jobs for board in devices.values()) and all(board.closed for board in devices.values())


def test_a_model_learns_from_costs_of_one_target() -> None:
    asked = RunOptions(Budget(10), SearchOptions(0, RandomModel(0)), devices=pair())
    with pytest.raises(ArgumentError, match="several targets with one cost model"):
        tuned(TASKS, None, asked, Reporter())
    assert tuned(OF_ONE, None, replace(asked, devices=Board("a")), Reporter())[0].best is not None
