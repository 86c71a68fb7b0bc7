"""The tuning loop: ask the search, measure, record, tell. For one task or for the tasks of a network.

    scheduler -> task -> tuner.ask -> C -> measurer -> records -> tuner.tell -> progress

The search itself is free of I/O; this is where it meets compiler, clock and disk.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler, processor_name
from ansor.cost_model.base import CostModel, default_model
from ansor.errors import AnsorError
from ansor.measure.failure import Failure
from ansor.measure.measurer import Job, Measurement, Measurer
from ansor.measure.record import Record, RecordFile, load, make_header, make_record
from ansor.schedule.sketch import Sketch
from ansor.search.task_scheduler import TaskInfo, TaskScheduler
from ansor.search.tuner import Outcome, Pick, Tuner, TunerOptions
from ansor.targets.base import Target
from ansor.task import SearchTask

ROUND = 16
SMALL_ROUND = 8


@dataclass(frozen=True)
class Best:
    """The fastest program of a task: its sketch, its row, and the seconds of one run."""

    sketch: Sketch
    row: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Progress:
    """Where a run stands, after a trial of `task`.

    trials: of the budget, those continued from included; measured: by this run; elapsed: seconds; failures: by kind; latest: that trial.
    tasks: how many there are; waiting: those without a valid program yet; seconds, flop: of one run of all the others, as often as they are used.
    """

    task: SearchTask
    trials: int
    measured: int
    budget: int
    elapsed: float
    tasks: int
    waiting: int
    seconds: float
    flop: float
    failures: dict[str, int]
    latest: Measurement


@dataclass
class TaskState:
    """A task and the best program known for it. `resumed`: trials found in the records, `trials`: those and the ones measured since."""

    task: SearchTask
    weight: float = 1.0
    best: Best | None = None
    resumed: int = 0
    trials: int = 0
    rounds: int = 0

    @property
    def seconds(self) -> float | None:
        """Best latency so far."""
        return None if self.best is None else self.best.seconds


Report = Callable[[str], None]
OnProgress = Callable[[Progress], None]


def quiet(_: object) -> None:
    """Say nothing."""


class TuningRun:
    """Tunes tasks within a budget of measured programs.

    Args:
        tasks, weights: what to tune, and how often each is used (1 by default).
        trials: budget over all tasks; trials found in `records` count.
        records: file to continue from and to append to; None keeps nothing.
        measurer: builds and runs candidates.
        options: how the search is done; its `budget` and `early_stop` are the run's.
        report: gets one line for each thing worth saying; on_progress: called after every trial.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        weights: Sequence[float] | None = None,
        *,
        trials: int,
        measurer: Measurer,
        records: str | Path | None = None,
        seed: int = 0,
        model: CostModel | None = None,
        early_stop: int | None = None,
        options: TunerOptions | None = None,
        report: Report = quiet,
        on_progress: OnProgress = quiet,
    ) -> None:
        self.trials = trials
        self.seed = seed
        self.measurer = measurer
        self.records = Path(records) if records is not None else None
        self.report = report
        self.on_progress = on_progress
        self.failures: Counter[str] = Counter()
        self.started = time.monotonic()
        shared = model or default_model(seed, report, informed=True)
        per_task = max(1, trials // max(1, len(tasks)))
        options = replace(options or TunerOptions(), budget=per_task, early_stop=early_stop)
        given = weights if weights is not None else [1.0] * len(tasks)
        self.states = [TaskState(task, weight) for task, weight in zip(tasks, given, strict=True)]
        self.scheduler = TaskScheduler([TaskInfo(weight=state.weight, flops=float(state.task.flop)) for state in self.states])
        self.tuners = {id(s): Tuner(s.task.spaces, shared, seed=seed, options=options, task=k) for k, s in enumerate(self.states)}

    def run(self) -> list[TaskState]:
        """Tune until the budget is used or nothing is left to try. Ctrl-C passes through; what was measured is recorded by then."""
        done = sum(self._resume(index, state) for index, state in enumerate(self.states))
        if done >= self.trials:
            if done:
                self.report(f"{done} trials are recorded already, the budget is {self.trials}: nothing to measure")
            return self.states
        writer = self._writer()
        try:
            for state in self._schedule(done):
                done += self._round(state, self._round_size(done), writer)
        finally:
            if writer is not None:
                writer.close()
        return self.states

    def _writer(self) -> RecordFile | None:
        if self.records is None:
            return None
        mcpu = self.states[0].task.target.mcpu
        return RecordFile(self.records, make_header(self.measurer.compiler, mcpu=mcpu, seed=self.seed))

    def _round_size(self, done: int) -> int:
        left = self.trials - done
        if len(self.states) == 1:
            return min(ROUND, left)
        return min(SMALL_ROUND, max(1, self.trials // (2 * len(self.states))), left)

    # resume ---------------------------------------------------------------------------------------------------------------------------------------

    def _resume(self, index: int, state: TaskState) -> int:
        """Tell tuner and scheduler what the record file knows of this task; gives the number of trials found."""
        if self.records is None or not self.records.exists():
            return 0
        found = recorded_outcomes(state.task, self.records)
        for reason, count in found.left_out.items():
            self.report(f"{self.records}: {count} records of {state.task.name} are left out: {reason}")
        known = found.known
        self.tuners[id(state)].tell([outcome for outcome, _ in known])
        for count, (outcome, failure) in enumerate(known, 1):
            self._note(state, outcome, failure)
            if count % SMALL_ROUND == 0 or count == len(known):
                self.scheduler.told(index, state.seconds, (count - 1) % SMALL_ROUND + 1)
        state.resumed = len(known)
        if known:
            self.report(f"{state.task.name}: continuing after {len(known)} recorded trials")
        return len(known)

    def _note(self, state: TaskState, outcome: Outcome, failure: Failure | None) -> None:
        state.trials += 1
        if failure is not None:
            self.failures[failure.kind] += 1
        if outcome.seconds is None or (state.best is not None and state.best.seconds <= outcome.seconds):
            return
        state.best = _best(state.task, outcome)

    # rounds ---------------------------------------------------------------------------------------------------------------------------------------

    def _schedule(self, done: int) -> Iterator[TaskState]:
        """Tasks in the order in which they get rounds."""
        measured = done
        if len(self.states) == 1:
            state = self.states[0]
            while measured < self.trials and not self._stopped(state):
                before = state.trials
                yield state
                measured += state.trials - before
                if state.trials == before:
                    return
            return
        scheduler = self.scheduler
        while measured < self.trials:
            index = scheduler.next_task()
            if index is None:
                self.report("no task has anything left to try")
                return
            state = self.states[index]
            before = state.trials
            yield state
            measured += state.trials - before
            scheduler.told(index, state.seconds, state.trials - before, exhausted=self.tuners[id(state)].finished is not None)

    def _stopped(self, state: TaskState) -> bool:
        reason = self.tuners[id(state)].finished
        if reason is not None:
            self.report(f"{state.task.name}: {reason}")
        return reason is not None

    def _round(self, state: TaskState, count: int, writer: RecordFile | None) -> int:
        picks = self.tuners[id(state)].ask(count)
        state.rounds += 1
        outcomes: list[Outcome] = []
        try:
            for pick, measurement in self._measured(state, picks):
                outcome = _outcome(pick, measurement)
                if writer is not None:
                    writer.append(self._record(state, pick, measurement))
                outcomes.append(outcome)
                self._note(state, outcome, measurement.failure)
                self.on_progress(self._progress(state, measurement))
        finally:
            self.tuners[id(state)].tell(outcomes)
        return len(outcomes)

    def _measured(self, state: TaskState, picks: Sequence[Pick]) -> Iterator[tuple[Pick, Measurement]]:
        """Measurements in the order of the picks; a program that cannot be written as C is a failure like any other."""
        jobs: dict[int, Job] = {}
        failed: dict[int, Measurement] = {}
        for k, pick in enumerate(picks):
            try:
                source = self._source(state, pick, k)
            except AnsorError as error:
                failed[k] = Measurement(failure=Failure("instantiation", str(error)))
                continue
            jobs[k] = Job(state.task.measure_task, source, state.seconds)
        results = self.measurer.measure(list(jobs.values()))
        for k, pick in enumerate(picks):
            yield pick, failed[k] if k in failed else next(results)

    def _source(self, state: TaskState, pick: Pick, number: int) -> CSource:
        return state.task.source(state.task.spaces[pick.space].sketch, pick.row, f"candidate{number}")

    def _record(self, state: TaskState, pick: Pick, measurement: Measurement) -> Record:
        space = state.task.spaces[pick.space]
        return make_record(
            measurement,
            workload=state.task.workload_key,
            target=record_target(state.task.target),
            algorithm=space.algorithm,
            sketch=space.sketch.to_json(),
            row=pick.row,
            seed=self.seed,
            round=state.rounds,
        )

    def _progress(self, state: TaskState, measurement: Measurement) -> Progress:
        trials = sum(s.trials for s in self.states)
        measured = trials - sum(s.resumed for s in self.states)
        known = [s for s in self.states if s.best is not None]
        seconds, flop = sum(s.weight * s.best.seconds for s in known if s.best), sum(s.weight * s.task.flop for s in known)
        return Progress(
            state.task, trials, measured, self.trials, time.monotonic() - self.started,
            len(self.states), len(self.states) - len(known), seconds, flop, dict(self.failures), measurement,
        )  # fmt: skip


def _outcome(pick: Pick, measurement: Measurement) -> Outcome:
    failure = measurement.failure
    return Outcome(pick, measurement.latency_s if failure is None else None, failure.kind if failure is not None else None)


def _best(task: SearchTask, outcome: Outcome) -> Best:
    assert outcome.seconds is not None
    return Best(task.spaces[outcome.pick.space].sketch, outcome.pick.row, outcome.seconds)


@dataclass(frozen=True)
class Recorded:
    """What a file knows of a task: outcomes that apply here, and how many records of the workload do not, by reason."""

    known: list[tuple[Outcome, Failure | None]]
    left_out: dict[str, int]


def record_target(target: Target) -> str:
    """The target as records name it: with the processor where it says `native`, and with the compiler, because times depend on both."""
    compiler = find_compiler(target.compiler).version
    return f"{target} ({processor_name()}, {compiler})" if target.mcpu == "native" else f"{target} ({compiler})"


@lru_cache(maxsize=1)
def _records_by_workload(path: Path, size: int, changed: int) -> dict[str, list[Record]]:
    """A file's records, read once for all tasks of a network; `size` and `changed` (nanoseconds) tell when to read it again."""
    found: dict[str, list[Record]] = {}
    for record in load(path).records:
        found.setdefault(record.workload, []).append(record)
    return found


def recorded_outcomes(task: SearchTask, records: str | Path) -> Recorded:
    """What a file knows of a task on its target."""
    path = Path(records)
    state = path.stat()
    target = record_target(task.target)
    of_workload = _records_by_workload(path, state.st_size, state.st_mtime_ns).get(task.workload_key, [])
    of_target = [record for record in of_workload if record.target == target]
    numbers = {(space.algorithm, space.name): k for k, space in enumerate(task.spaces)} if of_target else {}
    found = [(_outcome_of(record, task, numbers), record.failure) for record in of_target]
    known = [(outcome, failure) for outcome, failure in found if outcome is not None]
    left_out = {
        f"made for another target than {target}": len(of_workload) - len(of_target),
        "they name sketches that do not exist in this version": len(found) - len(known),
    }
    return Recorded(known, {reason: count for reason, count in left_out.items() if count})


def best_of_record(task: SearchTask, records: str | Path | None) -> Best | None:
    """The fastest recorded program of a task; None without a file or a valid record."""
    if records is None or not Path(records).exists():
        return None
    valid = [outcome for outcome, _ in recorded_outcomes(task, records).known if outcome.seconds is not None]
    return _best(task, min(valid, key=lambda outcome: outcome.seconds or 0.0)) if valid else None


def _outcome_of(record: Record, task: SearchTask, numbers: dict[tuple[str, str], int]) -> Outcome | None:
    """A record as the tuner wants it; None when its sketch or its row does not exist here."""
    index = numbers.get((record.algorithm, _sketch_name(record.sketch)))
    if index is None:
        return None
    sizes = task.spaces[index].sizes.tolist()
    if len(record.row) != len(sizes) or any(not 0 <= gene < size for gene, size in zip(record.row, sizes, strict=True)):
        return None
    return Outcome(Pick(index, record.row), record.latency_s if record.seconds else None, record.failure.kind if record.failure else None)


def _sketch_name(steps: object) -> str:
    return json.dumps(steps, separators=(",", ":"))
