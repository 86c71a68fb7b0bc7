"""Rounds of several tasks at a time: devices stay busy, the budget is met, and the search depends on the order of results alone."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from ansor.codegen.artifact import LIBRARY
from ansor.cost_model.random_model import RandomModel
from ansor.errors import MachineTrouble
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.flight import Steps
from ansor.measure.machine_trouble import KIND as MACHINE
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.measure.record import load
from ansor.run import rounds as rounds_module
from ansor.run import tuning as tuning_module
from ansor.run.budget import Budget
from ansor.run.options import SearchOptions, Trials
from ansor.run.reporter import Callbacks
from ansor.run.rounds import Round, RoundsInFlight
from ansor.run.states import Progress
from ansor.run.tuning import TuningRun
from ansor.search.tuner import Pick
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from tests.run.test_tuning import FakeMeasurer

T = TypeVar("T")
TASKS = [SearchTask(workloads.matmul, (16, size, 16), "cpu -threads=1") for size in (16, 32, 48, 64)]


class Board:
    """Counts the letters of a program, and waits. together: boards that begin their first jobs at the same time, or raise BrokenBarrierError."""

    alone, model, unit, form = False, "board", INSTRUCTIONS, LIBRARY

    def __init__(self, name: str, seconds: float = 0.02, together: threading.Barrier | None = None) -> None:
        self.name, self.seconds, self.together, self.ran = name, seconds, together, list[str]()

    def run(self, job: Job) -> Observation | Failure:
        self.ran.append(job.task.key)
        if self.together is not None and len(self.ran) == 1:
            self.together.wait(100)
        time.sleep(self.seconds)
        return Observation((float(len(job.artifact.source.text)),), INSTRUCTIONS)

    def close(self) -> None:
        pass


def tuned(
    boards: Sequence[Board], trials: int, records: Path | None = None, callbacks: Callbacks | None = None, seconds: float | None = None,
    tasks: Sequence[SearchTask] = TASKS,
) -> TuningRun:  # fmt: skip
    with Measurer("cpu -threads=1", boards, jobs=1) as measurer:
        budget, search = Budget(trials, seconds), SearchOptions(0, RandomModel(0))
        run = TuningRun(tasks, measurer=measurer, budget=budget, search=search, trials=Trials(records), callbacks=callbacks)
        run.run()
        return run


def test_several_devices_are_kept_busy_with_several_tasks(tmp_path: Path) -> None:
    together = threading.Barrier(3)
    boards = [Board(f"b{number}", together=together) for number in range(3)]
    seen: list[Progress] = []
    found = tuned(boards, 30, tmp_path / "r.jsonl", Callbacks(update=seen.append))
    assert not together.broken and all(board.ran for board in boards)
    assert [line.partition(":")[0] for line in seen[-1].devices] == ["b0", "b1", "b2"]
    assert sum(state.trials for state in found.states) == len(load(tmp_path / "r.jsonl").records) == 30
    rows = [(record.workload, record.sketch, record.row) for record in load(tmp_path / "r.jsonl").records]
    assert len(set(rows)) == 30 and all(state.best is not None for state in found.states)


def test_one_task_keeps_several_devices_busy(tmp_path: Path) -> None:
    """Each trial is noted with the round it belongs to, though rounds overlap; none is measured twice."""
    run = tuned([Board("a"), Board("b")], 41, tmp_path / "r.jsonl", tasks=TASKS[3:])
    records = load(tmp_path / "r.jsonl").records
    assert len({(record.sketch, record.row) for record in records}) == len(records) == run.states[0].trials == 41
    assert Counter(record.round for record in records) == {1: 16, 2: 16, 3: 9}


def test_rounds_of_one_device_overlap(tmp_path: Path) -> None:
    """The second round is searched for before the first has run, and none of its programs is measured again."""
    asked: list[int] = []

    class Asking(Board):
        def run(self, job: Job) -> Observation | Failure:
            while len(asked) < 2:
                time.sleep(0.01)
            return super().run(job)

    with Measurer("cpu -threads=1", [Asking("one", 0.0)], jobs=1) as measurer:
        run = TuningRun(TASKS[3:], measurer=measurer, budget=Budget(40), search=SearchOptions(0, RandomModel(0)), trials=Trials(tmp_path / "r.jsonl"))
        run.on_round = lambda number, after: None if after else asked.append(number)
        run.run()
    records = load(tmp_path / "r.jsonl").records
    assert len({(record.sketch, record.row) for record in records}) == len(records) == 40 and len(asked) == 3


def test_what_was_interrupted_goes_on(tmp_path: Path) -> None:
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned([Board("a"), Board("b")], 30, tmp_path / "r.jsonl", Callbacks(update=interrupt))
    assert len(load(tmp_path / "r.jsonl").records) == 10
    assert sum(state.trials for state in tuned([Board("a"), Board("b")], 30, tmp_path / "r.jsonl").states) == 30
    rows = [(record.workload, record.sketch, record.row) for record in load(tmp_path / "r.jsonl").records]
    assert len(set(rows)) == len(rows) == 30


def test_the_time_ends_it() -> None:
    found = tuned([Board("a", 0.3), Board("b", 0.3)], 100_000, seconds=1.5)
    assert sum(state.trials for state in found.states) < 1000


class FakeQueue:
    """Nothing runs on it."""

    def stop(self) -> None:
        pass

    def lines(self) -> Sequence[str]:
        return ()


class FakeFlight:
    """A batch whose measurements come when the test says: costs are lengths of texts."""

    def __init__(self, measurer: object, count: int) -> None:
        self.batch, self.ready, self.given = list[Candidate](), 0, 0

    def is_part(self, count: int) -> bool:
        return count == 2

    def add(self, part: Sequence[Candidate], *, last: bool) -> None:
        self.batch += part

    @property
    def over(self) -> bool:
        return self.given == len(self.batch)

    def advance(self) -> list[Measurement]:
        found = [self.measured(one) for one in self.batch[self.given : self.ready]]
        self.given = self.ready
        return found

    def measured(self, one: Candidate) -> Measurement:
        return Measurement((float(len(one.source.text)),), unit=INSTRUCTIONS)

    def end(self) -> None:
        pass


def scripted(
    monkeypatch: pytest.MonkeyPatch, seed: int, *, in_drops: bool, tasks: Sequence[SearchTask] = TASKS, beside: list[int] | None = None,
    devices: Sequence[str] = ("one", "two"),
) -> list[str]:  # fmt: skip
    """All programs in the order in which they were asked for. Rounds are measured in an order of the seed; in_drops: results of others come in between.

    beside: how many rounds were under way whenever one was waited for.
    """
    asked: list[str] = []
    order, drops = random.Random(seed), random.Random(seed + 1)

    class Noting(FakeFlight):
        def add(self, part: Sequence[Candidate], *, last: bool) -> None:
            super().add(part, last=last)
            asked.extend(one.source.text for one in part)

    def wait_for_any(flights: Sequence[FakeFlight]) -> None:
        if not flights:
            return
        if beside is not None:
            beside.append(len(flights))
        chosen = order.choice([one for one in flights if not one.over])
        for one in flights if in_drops else ():
            one.ready = max(one.ready, drops.randrange(len(one.batch)))  # not all of them: that would end another one
        chosen.ready = len(chosen.batch)

    monkeypatch.setattr(rounds_module, "Flight", Noting)
    monkeypatch.setattr(tuning_module, "wait_for_any", wait_for_any)
    measurer = FakeMeasurer()
    measurer.ahead, measurer.queue = 8, FakeQueue()  # type: ignore[attr-defined]
    measurer.unit, measurer.devices = INSTRUCTIONS, devices
    search = SearchOptions(0, RandomModel(0))
    TuningRun(tasks, measurer=measurer, budget=Budget(60), search=search).run()  # type: ignore[arg-type]  # a fake
    return asked


def test_the_same_order_of_results_gives_the_same_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that end in the same order decide all; when their trials come in between does not."""
    runs = [scripted(monkeypatch, seed, in_drops=drops) for seed in (1, 2) for drops in (False, True)]
    assert runs[0] == runs[1] and runs[2] == runs[3] and runs[0] != runs[2] and len(runs[0]) == 60


@pytest.mark.parametrize("tasks", [TASKS, TASKS[:2], TASKS[3:]])
def test_with_one_device_the_same_results_give_the_same_search(monkeypatch: pytest.MonkeyPatch, tasks: Sequence[SearchTask]) -> None:
    """A later round may be measured sooner, for example if all of its programs are known; the order of rounds stays."""
    runs = [scripted(monkeypatch, seed, in_drops=drops, tasks=tasks, devices=("one",)) for seed in (1, 2, 3) for drops in (False, True)]
    assert all(one == runs[0] for one in runs) and len(runs[0]) == 60


@pytest.mark.parametrize(("in_order", "expected"), [(True, [0, 0, 1, 1]), (False, [0, 1, 1, 0])])
def test_trials_of_a_later_round_wait_where_rounds_end_in_order(monkeypatch: pytest.MonkeyPatch, in_order: bool, expected: list[int]) -> None:
    heard, flights, candidate = list[int](), list[FakeFlight](), cast(Candidate, SimpleNamespace(source=SimpleNamespace(text="x")))

    def flight(measurer: object, count: int) -> FakeFlight:
        flights.append(FakeFlight(measurer, count))
        return flights[-1]

    def hear(round_: Round, pick: Pick, measurement: Measurement) -> None:
        heard.append(round_.index)

    def finished(steps: Steps[T]) -> T:
        """What the steps return. Whenever they wait, the first flight ends."""
        while True:
            try:
                waiting = next(steps)
            except StopIteration as over:
                return cast(T, over.value)
            for _ in waiting[:1]:
                flights[0].ready = 2

    monkeypatch.setattr(rounds_module, "Flight", flight)
    rounds = RoundsInFlight(cast(Measurer, SimpleNamespace(queue=FakeQueue())), in_order=in_order)
    for index in range(2):
        finished(rounds.start(Round(index, [Pick(0, (0,)), Pick(0, (1,))], 1, searched=True), [candidate] * 2, hear))
    flights[0].ready, flights[1].ready = 1, 2
    ended = [finished(rounds.next_ended(hear, lambda: False)) for _ in range(2)]
    assert heard == expected and [one.index for one in ended if one is not None] == ([0, 1] if in_order else [1, 0])


def test_rounds_of_one_task_overlap_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[int] = []
    runs = [scripted(monkeypatch, 1, in_drops=drops, tasks=TASKS[3:], beside=beside) for drops in (False, True)]
    assert runs[0] == runs[1] and len(runs[0]) == 60
    assert beside[0] == max(beside) == 2


def test_trouble_of_the_machine_ends_it_and_the_others_of_the_round_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Troubled(FakeFlight):
        def measured(self, one: Candidate) -> Measurement:
            return Measurement(failure=Failure(MACHINE, "no space left")) if one is self.batch[0] else super().measured(one)

    def wait_for_any(flights: Sequence[FakeFlight]) -> None:
        for one in flights[:1]:
            one.ready = len(one.batch)

    monkeypatch.setattr(rounds_module, "Flight", Troubled)
    monkeypatch.setattr(tuning_module, "wait_for_any", wait_for_any)
    measurer = FakeMeasurer()
    measurer.ahead, measurer.queue = 8, FakeQueue()  # type: ignore[attr-defined]
    run = TuningRun(TASKS, measurer=measurer, budget=Budget(60), search=SearchOptions(0, RandomModel(0)))  # type: ignore[arg-type]  # a fake
    with pytest.raises(MachineTrouble, match="no space left"):
        run.run()
    assert run.states[0].trials > 0
