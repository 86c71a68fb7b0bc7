"""The tuning loop: ask the search, measure, record, tell. For one task or for the tasks of a network.

    scheduler -> task -> tuner.ask -> C -> measurer -> records -> tuner.tell -> progress

The search itself is free of I/O; this is where it meets compiler, clock and disk.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansor.codegen.source import CSource
from ansor.cost_model.base import CostModel
from ansor.cost_model.pretrained import pretrained
from ansor.errors import AnsorError
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import KIND as MACHINE
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measurer import Job, Measurement, Measurer
from ansor.measure.record import Record, RecordFile, make_header, make_record
from ansor.run.budget import FEWEST_TRIALS, Budget
from ansor.run.first_failures import FirstFailures
from ansor.run.record_target import record_target
from ansor.run.recorded import Recorded, recorded_outcomes, say_left_out
from ansor.schedule.sketch import Sketch
from ansor.search.expected_gain import Prospect, gain_of_rest
from ansor.search.task_scheduler import Objective, SchedulerOptions, TaskInfo, TaskScheduler
from ansor.search.tuner import Outcome, Pick, Tuner, TunerOptions
from ansor.support.text import counted, format_left, format_seconds, format_share
from ansor.tasks.origins import origin_of, standing
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

ROUND = 16
SMALL_ROUND = 8
FIRST_PACE = 0.5
"""Seconds a trial is taken to last before there was one; some last a tenth of it, the first ones of a run longer."""


@dataclass(frozen=True, repr=False)
class Best:
    """The fastest program of a task: its sketch, its row, and the seconds of one run; who made it, "" for the plain declaration."""

    sketch: Sketch
    row: tuple[int, ...]
    seconds: float
    origin: str = ""

    def __repr__(self) -> str:
        measured = format_seconds(self.seconds) if math.isfinite(self.seconds) else "not measured"
        return f"Best({measured}, {self.origin or 'the declaration as it is'}, row={self.row})"


@dataclass(frozen=True, repr=False)
class Progress:
    """Where a run stands, after a trial of `task`.

    trials: of the budget, those continued from included; measured: by this run; elapsed: seconds; failures: by kind; latest: that trial.
    budget: trials, None where only the time is limited; left: seconds of the time, None where only trials are limited; gain: share of the time of
    all kernels that the rest of the budget is expected to save, None before that can be said.
    pace: seconds a trial takes where programs are searched for, None before that is known.
    tasks: how many there are; waiting: those without a valid program yet; seconds, flop: of one run of all the others, as often as they are used, each kernel
    timed alone with warm caches. fewer_operations: some of these programs need fewer operations than `flop`, which counts them as declared.
    """

    task: SearchTask
    trials: int
    measured: int
    budget: int | None
    elapsed: float
    tasks: int
    waiting: int
    seconds: float
    flop: float
    failures: dict[str, int]
    latest: Measurement
    left: float | None = None
    gain: float | None = None
    pace: float | None = None
    fewer_operations: bool = False

    def __repr__(self) -> str:
        of = "" if self.budget is None else f" of {self.budget}"
        best = f", {format_seconds(self.seconds)}" if self.waiting < self.tasks else ""
        return f"Progress({self.task.name}: {self.trials}{of} trials{best}, {sum(self.failures.values())} failed)"


@dataclass(frozen=True)
class Guess:
    """A program that was chosen without measuring. how: it was chosen, in words. confidence: the share of the speed of a tuned program that it is
    expected to have, None where nothing is known of that."""

    program: Best
    how: str
    confidence: float | None


@dataclass(repr=False)
class TaskState:
    """A task and the best program known for it. `resumed`: trials found in the records, `trials`: those and the ones measured since.

    `guess`: what serves where nothing valid is known, once that was asked for.
    `left_out`: records of the workload that do not count here, by reason.
    `by_origin`: seconds of the fastest program of the rules, and of each template; `failures`: trials that failed, by kind.
    `best_at`: trials when the best was found; `searched`: whether the last round had more than picks; `spent`: seconds of those rounds of this run that ended,
    of `timed` trials. In the round of picks are the reference and the first compilation, so that it says nothing of the pace.
    """

    task: SearchTask
    weight: float = 1.0
    best: Best | None = None
    guess: Guess | None = None
    resumed: int = 0
    trials: int = 0
    rounds: int = 0
    best_at: int = 0
    searched: bool = False
    spent: float = 0.0
    timed: int = 0
    by_origin: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def seconds(self) -> float | None:
        """Best latency so far."""
        return None if self.best is None else self.best.seconds

    @property
    def fewer_operations(self) -> bool:
        """Whether the best program needs fewer operations than the declaration, which `task.flop` counts: Winograd's algorithm and its like."""
        return self.best is not None and self.best.sketch.dag.flop < self.task.flop

    def __repr__(self) -> str:
        best = "no valid program yet" if self.seconds is None else f"best {format_seconds(self.seconds)}"
        failed = f", {sum(self.failures.values())} failed" if self.failures else ""
        return f"TaskState({self.task.name}: {best}, {counted(self.trials, 'trial')}{failed}, weight {self.weight:g})"


First = Callable[[SearchTask, CostModel, Sequence[SketchSpace]], Guess]
"""Picks a program out of some spaces of a task."""

Log = Callable[[SearchTask, SketchSpace, Record], bool]
OnRound = Callable[[int, bool], None]
Report = Callable[[str], None]
OnProgress = Callable[[Progress], None]


def quiet(_: object) -> None:
    """Say nothing."""


class TuningRun:
    """Tunes tasks within a budget of measured programs.

    Args:
        tasks, weights: what to tune, and how often each is used (1 by default).
        trials, minutes: budget over all tasks, one of them or both; trials found in `records` count, building kernels afterwards does not.
        min_gain: end when the rest of the budget is expected to save less than this share of the kernels' time; by default 0.01 with minutes alone,
            and 0, which is never, with trials.
        records: file to continue from and to append to; None keeps nothing.
        measurer: builds and runs candidates; what its `measure` gives is closed after each round.
        first: gives the program that is measured first of all of a task, before anything is searched for; where templates are searched along, one of the
            rules and one of each template.
        known: for each task what was measured before, elsewhere: it is told to the search, and counts towards no budget.
        log: is shown every trial; the ones that it takes (True) are not written to `records`.
        objective, scheduling: what the rounds of several tasks are to lower, and how they are dealt out. round_size: trials of a round, at most.
        on_round: called with a task's number before each of its rounds (False), and after it (True).
        options: how the search is done; its `budget` and `early_stop` are the run's.
        alarm: gets lines that must be seen, by default `report` does.
        report: gets one line for each thing worth saying; on_progress: called after every trial; now: gets what goes on before and between them, in words.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        weights: Sequence[float] | None = None,
        *,
        trials: int | None = None,
        minutes: float | None = None,
        min_gain: float | None = None,
        measurer: Measurer,
        records: str | Path | None = None,
        seed: int = 0,
        model: CostModel | None = None,
        early_stop: int | None = None,
        options: TunerOptions | None = None,
        first: First | None = None,
        known: Sequence[Sequence[Outcome]] = (),
        log: Log | None = None,
        objective: Objective | None = None,
        scheduling: SchedulerOptions | None = None,
        round_size: int = ROUND,
        on_round: OnRound | None = None,
        report: Report = quiet,
        alarm: Report | None = None,
        on_progress: OnProgress = quiet,
        now: Report = quiet,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = Budget.of(trials, minutes, min_gain)
        self.clock = clock
        self.seed = int(seed)
        self.measurer = measurer
        self.records = Path(records) if records is not None else None
        self.report = report
        self.alarm = alarm or report
        self.on_progress = on_progress
        self.now = now
        self.failures: Counter[str] = Counter()
        self._first_failures = FirstFailures()
        self.started = clock()
        self.first = first
        self.model = shared = model or pretrained()
        options = replace(options or TunerOptions(), early_stop=early_stop)
        if trials is not None:
            options = replace(options, budget=max(1, trials // max(1, len(tasks))))
        given = weights if weights is not None else [1.0] * len(tasks)
        self.states = [TaskState(task, weight) for task, weight in zip(tasks, given, strict=True)]
        self.log = log
        self.round_size = round_size
        self.on_round = on_round
        self.scheduler = TaskScheduler([TaskInfo(weight=state.weight) for state in self.states], objective=objective, options=scheduling)
        self.tuners = {id(s): Tuner(self._spaces(s, k), shared, seed=seed, options=options, task=k) for k, s in enumerate(self.states)}
        for state, outcomes in zip(self.states, known, strict=False):
            self._tell_known(state, outcomes)

    def _spaces(self, state: TaskState, number: int) -> tuple[SketchSpace, ...]:
        """What is searched of a task, derived now if it was not before."""
        of = f" ({number + 1} of {len(self.states)})" if len(self.states) > 1 else ""
        self.now(f"deriving the programs of {state.task.name}{of}")
        return state.task.spaces

    def run(self) -> list[TaskState]:
        """Tune until the budget is used or nothing is left to try. Ctrl-C passes through; what was measured is recorded by then."""
        done = sum(self._resume(index, state) for index, state in enumerate(self.states))
        if self.records is not None and self.records.exists():
            say_left_out([state.left_out for state in self.states], self.records, self.report, self.alarm)
        if not self.budget.trials_left(done):
            if done:
                self.report(f"{done} trials are recorded already, the budget is {self.budget.trials}: nothing to measure")
            return self.states
        writer = self._writer()
        try:
            for state in self._schedule(done):
                done += self._round(state, self._round_size(state, done), writer)
        finally:
            self._first_failures.settle()
            if writer is not None:
                writer.close()
        self._report_end()
        return self.states

    def _writer(self) -> RecordFile | None:
        if self.records is None:
            return None
        mcpu = self.states[0].task.target.mcpu
        names = {state.task.workload_key: state.task.name for state in self.states}
        return RecordFile(self.records, make_header(self.measurer.compiler, mcpu=mcpu, seed=self.seed, names=names))

    def _round_size(self, state: TaskState, done: int) -> int:
        """A round of usual size, or what still fits; with several tasks none gets more than half of its share of the budget at once."""
        elapsed = self._elapsed()
        fits = max(1.0, self.budget.fitting(done, elapsed, self._pace(state)))
        if len(self.states) == 1:
            return int(min(ROUND, self.round_size, fits))
        whole = min(self.budget.trials or math.inf, done + self.budget.fitting(done, elapsed, self._pace(None)))
        return int(min(SMALL_ROUND, self.round_size, max(1, whole // (2 * len(self.states))), fits))

    def _elapsed(self) -> float:
        return self.clock() - self.started

    def _pace(self, state: TaskState | None) -> float:
        """Seconds a trial of this run takes: of the task, or of all tasks if no round of it has ended yet or None is given."""
        known = [one for one in ([state] if state is not None else self.states) if one.timed and one.spent > 0]
        if not known:
            return FIRST_PACE if state is None else self._pace(None)
        return sum(one.spent for one in known) / sum(one.timed for one in known)

    # resume ---------------------------------------------------------------------------------------------------------------------------------------

    def _resume(self, index: int, state: TaskState) -> int:
        """Tell tuner and scheduler what the record file knows of this task; gives the number of trials found."""
        if self.records is None or not self.records.exists():
            return 0
        found = recorded_outcomes(state.task, self.records)
        state.left_out.update(found.left_out)
        known = found.known
        self.tuners[id(state)].tell([outcome for outcome, _ in known])
        for count, (outcome, record) in enumerate(known, 1):
            self._note(state, outcome, record.failure)
            if count % SMALL_ROUND == 0 or count == len(known):
                self.scheduler.told(index, state.seconds, (count - 1) % SMALL_ROUND + 1, since=state.trials - state.best_at)
        state.resumed = len(known)
        if known:
            self.report(f"{state.task.name}: continuing after {len(known)} recorded trials")
        return len(known)

    def _tell_known(self, state: TaskState, outcomes: Sequence[Outcome]) -> None:
        """What was measured elsewhere: the search knows it, and the best of it is the one to beat."""
        self.tuners[id(state)].tell(outcomes)
        valid = [outcome for outcome in outcomes if outcome.valid]
        if valid:
            state.best = _best(state.task, min(valid, key=lambda outcome: outcome.seconds or 0.0))

    def _note(self, state: TaskState, outcome: Outcome, failure: Failure | None) -> None:
        state.trials += 1
        if failure is not None:
            self.failures[failure.kind] += 1
            state.failures[failure.kind] += 1
        if outcome.seconds is not None:
            origin = origin_of(state.task.spaces[outcome.pick.space].algorithm)
            state.by_origin[origin] = min(outcome.seconds, state.by_origin.get(origin, math.inf))
        if outcome.seconds is None or (state.best is not None and state.best.seconds <= outcome.seconds):
            return
        state.best, state.best_at = _best(state.task, outcome), state.trials

    # rounds ---------------------------------------------------------------------------------------------------------------------------------------

    def _schedule(self, done: int) -> Iterator[TaskState]:
        """Tasks in the order in which they get rounds."""
        while not self._is_over(done):
            index = self._next_task()
            if index is None:
                return
            state = self.states[index]
            before, since = state.trials, self.clock()
            if self.on_round is not None:
                self.on_round(index, False)
            yield state
            count, seconds = state.trials - before, self.clock() - since
            done += count
            if state.searched:
                state.timed, state.spent = state.timed + count, state.spent + seconds
            # Times differ from run to run. Where only trials are limited they decide nothing, so that the same seed and results give the same rounds.
            self.scheduler.told(
                index, state.seconds, count, exhausted=self.tuners[id(state)].finished is not None,
                since=state.trials - state.best_at, seconds=seconds if state.searched and self.budget.seconds is not None else None,
            )  # fmt: skip
            if self.on_round is not None:
                self.on_round(index, True)
            if count == 0 and len(self.states) == 1:
                return

    def _next_task(self) -> int | None:
        if len(self.states) == 1:
            return None if self._stopped(self.states[0]) else 0
        index = self.scheduler.next_task()
        if index is None:
            self.report("no task has anything left to try")
        return index

    def _is_over(self, done: int) -> bool:
        """Whether the budget is used, or what is left of it not worth using, which is said."""
        if self.budget.is_used(done, self._elapsed()):
            return True
        gain = self._gain_of_rest() if self.budget.min_gain > 0 and done >= FEWEST_TRIALS * len(self.states) else None
        if gain is None or gain >= self.budget.min_gain:
            return False
        self.report(f"stopping early: {self._rest(done)} would be expected to save {format_share(gain)}, under {format_share(self.budget.min_gain)} (min_gain)")
        return True

    def _rest(self, done: int) -> str:
        """What is left of the budget, in words."""
        trials, seconds = self.budget.trials_left(done), self.budget.seconds_left(self._elapsed())
        words = [f"{format_left(seconds)} more"] if seconds < math.inf else []
        return " or ".join([*words, f"{int(trials)} more trials"] if trials < math.inf else words)

    # gain ---------------------------------------------------------------------------------------------------------------------------------------------

    def _gain_of_rest(self) -> float | None:
        """Share of the kernels' summed time that the rest of the budget is expected to save; None while a task waits for its first valid program."""
        done, elapsed = sum(state.trials for state in self.states), self._elapsed()
        gains = []
        if self.budget.trials is not None:
            gains.append(self._gain(self.budget.trials_left(done), timed=False))
        if self.budget.seconds is not None:
            gains.append(self._gain(self.budget.seconds_left(elapsed), timed=True))
        return min((gain for gain in gains if gain is not None), default=None)

    def _gain(self, budget: float, timed: bool) -> float | None:
        """Expected gain of so many more trials, or seconds if `timed`; a task with nothing left to try counts in the sum, but gains nothing."""
        prospects = []
        for index, state in enumerate(self.states):
            over = not self.scheduler.alive(index) or self.tuners[id(state)].finished is not None
            if state.best is None and not over:
                return None
            if state.best is not None:
                cost = math.inf if over else self._pace(state) if timed else 1.0
                prospects.append(Prospect(state.weight * state.best.seconds, state.trials, state.trials - state.best_at, cost))
        return gain_of_rest(prospects, budget) if prospects else None

    def _report_end(self) -> None:
        """How much there was, and what going on would be expected to bring."""
        trials = sum(state.trials for state in self.states)
        measured = trials - sum(state.resumed for state in self.states)
        again = self._gain(trials, timed=False)
        more = f"; {counted(trials, 'trial')} more would be expected to save {format_share(again)}" if again else ""
        self.report(f"{self._reached()}{counted(measured, 'trial')} in {format_left(self._elapsed())}{more}")
        for state in self.states:
            origins = _origins(state.task)
            if len(origins) > 1:
                self.report(f"{state.task.name}: {standing({name: state.by_origin.get(name) for name in origins})}")

    def _reached(self) -> str:
        """The best of one task; of several the sum, and of what."""
        known = [state for state in self.states if state.best is not None]
        if not known:
            return "no valid program: "
        if len(self.states) == 1:
            return f"{known[0].task.name}: {format_seconds(known[0].seconds or 0.0)}, "
        total = sum(state.weight * (state.seconds or 0.0) for state in known)
        return f"{counted(len(known), 'kernel')}: {format_seconds(total)} in total, each alone with warm caches; "

    def _stopped(self, state: TaskState) -> bool:
        reason = self.tuners[id(state)].finished
        if reason is not None:
            self.report(f"{state.task.name}: {reason}")
        return reason is not None

    def _suggest_first(self, state: TaskState) -> int:
        """Have the programs that are picked without measuring measured first; gives how many there are."""
        if self.first is None or not self.model.fitted:
            return 0
        spaces, suggested = state.task.spaces, 0
        for origin in _origins(state.task):
            program = self.first(state.task, self.model, [space for space in spaces if origin_of(space.algorithm) == origin]).program
            for place, space in enumerate(spaces):
                if space.sketch is program.sketch:
                    suggested += self.tuners[id(state)].suggest(Pick(place, program.row))
        return suggested

    def _round(self, state: TaskState, count: int, writer: RecordFile | None) -> int:
        if not state.trials:
            self.now(f"choosing, building and measuring the first program of {state.task.name}")
        suggested = 0 if state.trials else self._suggest_first(state)
        if suggested:  # they are measured alone: they are there, and a search would take longer than they do
            count = min(count, suggested)
        picks = self.tuners[id(state)].ask(count, self.budget.share(sum(one.trials for one in self.states), self._elapsed()))
        state.rounds += 1
        state.searched = not suggested
        outcomes: list[Outcome] = []
        trouble: Failure | None = None
        try:
            with closing(self._measured(state, picks)) as measured:
                for pick, measurement in measured:
                    if measurement.failure is not None and measurement.failure.kind == MACHINE:
                        trouble = measurement.failure  # not the program's: nothing is known of it; the others of the round count
                        continue
                    outcome = _outcome(pick, measurement)
                    self._keep(state, pick, measurement, writer)
                    outcomes.append(outcome)
                    self._note(state, outcome, measurement.failure)
                    self.on_progress(self._progress(state, measurement))
                    if not self.budget.seconds_left(self._elapsed()):
                        break
        finally:
            self.tuners[id(state)].tell(outcomes)
        check_trouble(trouble)
        return len(outcomes)

    def _keep(self, state: TaskState, pick: Pick, measurement: Measurement, writer: RecordFile | None) -> None:
        """Written down where it belongs. Raises MeasureError when the first programs all fail alike."""
        def write() -> None:
            if writer is None and self.log is None:
                return
            record = self._record(state, pick, measurement)
            taken = self.log is not None and self.log(state.task, state.task.spaces[pick.space], record)
            if writer is not None and not taken:
                writer.append(record)

        self._first_failures.keep(measurement.failure, write)

    def _measured(self, state: TaskState, picks: Sequence[Pick]) -> Generator[tuple[Pick, Measurement], None, None]:
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
        with closing(self.measurer.measure(list(jobs.values()))) as results:
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
            state.task, trials, measured, self.budget.trials, self._elapsed(),
            len(self.states), len(self.states) - len(known), seconds, flop, dict(self.failures), measurement,
            None if self.budget.seconds is None else self.budget.seconds_left(self._elapsed()), self._gain_of_rest(),
            self._pace(None) if any(one.timed for one in self.states) else None, any(s.fewer_operations for s in known),
        )  # fmt: skip


def _origins(task: SearchTask) -> list[str]:
    """The rules and the templates that a task has sketches of, in its order."""
    return list(dict.fromkeys(origin_of(space.algorithm) for space in task.spaces))


def _outcome(pick: Pick, measurement: Measurement) -> Outcome:
    failure = measurement.failure
    return Outcome(pick, measurement.latency_s if failure is None else None, failure.kind if failure is not None else None)


def _best(task: SearchTask, outcome: Outcome) -> Best:
    assert outcome.seconds is not None
    space = task.spaces[outcome.pick.space]
    return Best(space.sketch, outcome.pick.row, outcome.seconds, origin_of(space.algorithm))


def best_of_recorded(task: SearchTask, found: Recorded) -> Best | None:
    """The fastest of what a file knows of a task; None without a valid one."""
    valid = [outcome for outcome, _ in found.known if outcome.seconds is not None]
    return _best(task, min(valid, key=lambda outcome: outcome.seconds or 0.0)) if valid else None
