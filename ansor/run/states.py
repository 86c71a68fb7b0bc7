"""The state of a run: its tasks, their best programs, and its progress."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansor.measure.failure import Failure
from ansor.measure.measurer import Measurement
from ansor.schedule.sketch import Sketch
from ansor.search.tuner import Outcome
from ansor.support.text import counted
from ansor.targets.unit import SECONDS, Unit
from ansor.tasks.origins import origin_of
from ansor.tasks.recorded import RecordedTrials
from ansor.tasks.task import SearchTask

LEADERS, NEAR = 4, 1.1
"""How many of a task's fastest programs are kept, and how much slower than the fastest they may be: a network times them once more in place."""


@dataclass(frozen=True, repr=False)
class Best:
    """The fastest program of a task: its sketch, its row, the cost of one run, and its origin, "" for the plain declaration."""

    sketch: Sketch
    row: tuple[int, ...]
    cost: float
    origin: str = ""
    unit: Unit = SECONDS

    def __repr__(self) -> str:
        measured = self.unit.text(self.cost) if math.isfinite(self.cost) else "not measured"
        return f"Best({measured}, {self.origin or 'the declaration as it is'}, row={self.row})"


@dataclass(frozen=True)
class BudgetUse:
    """How much of the budget is used.

    trials: used trials, including recorded ones; measured: trials of this run; budget: the trial limit, None if only time is limited; elapsed: seconds;
    left: seconds left, None if only trials are limited; pace: seconds per trial in rounds of searched programs, None before that is known.
    """

    trials: int
    measured: int
    budget: int | None
    elapsed: float
    left: float | None = None
    pace: float | None = None


@dataclass(frozen=True)
class RunResults:
    """The results of all tasks so far.

    tasks: their number; waiting: the number without a valid program yet; cost, flop: totals over the others, weighted by their uses, each kernel timed alone
    with warm caches. fewer_operations: some of these programs need fewer operations than `flop`, which counts the declared ones.
    """

    tasks: int
    waiting: int
    cost: float
    flop: float
    fewer_operations: bool = False
    unit: Unit = SECONDS


@dataclass(frozen=True, repr=False)
class Progress:
    """The state of a run after a trial of `task`. It also has the attributes of `spent` and `reached`.

    latest: that trial; failures: by kind; gain: the share of the kernels' total time that the rest of the budget is expected to save, None if unknown.
    devices: with several devices, a line on what each is doing. whole: in a run of several targets all of them; the other attributes are those of the
    task's target.
    """

    task: SearchTask
    latest: Measurement
    spent: BudgetUse
    reached: RunResults
    failures: Mapping[str, int] = field(default_factory=dict)
    gain: float | None = None
    devices: Sequence[str] = ()
    whole: WholeRun | None = None

    @property
    def total(self) -> BudgetUse:
        """The used budget of all targets."""
        return self.spent if self.whole is None else self.whole.spent

    @property
    def trials(self) -> int:
        return self.spent.trials

    @property
    def measured(self) -> int:
        return self.spent.measured

    @property
    def budget(self) -> int | None:
        return self.spent.budget

    @property
    def elapsed(self) -> float:
        return self.spent.elapsed

    @property
    def left(self) -> float | None:
        return self.spent.left

    @property
    def pace(self) -> float | None:
        return self.spent.pace

    @property
    def tasks(self) -> int:
        return self.reached.tasks

    @property
    def waiting(self) -> int:
        return self.reached.waiting

    @property
    def cost(self) -> float:
        return self.reached.cost

    @property
    def flop(self) -> float:
        return self.reached.flop

    @property
    def fewer_operations(self) -> bool:
        return self.reached.fewer_operations

    @property
    def unit(self) -> Unit:
        return self.reached.unit

    def __repr__(self) -> str:
        of = "" if self.budget is None else f" of {self.budget}"
        best = f", {self.unit.text(self.cost)}" if self.waiting < self.tasks else ""
        return f"Progress({self.task.name}: {self.trials}{of} trials{best}, {sum(self.failures.values())} failed)"


@dataclass(frozen=True)
class WholeRun:
    """A run of several targets. spent: by all of them (without a pace: their devices work side by side); latest: the latest progress of each that has any,
    in the order of the targets."""

    spent: BudgetUse
    latest: tuple[Progress, ...]


@dataclass(frozen=True)
class Guess:
    """A program chosen without measuring. how: a text on how it was chosen. confidence: its expected speed as a share of a tuned program's, None if
    unknown. refused: the target's limits, or the pins, leave no other program."""

    program: Best
    how: str
    confidence: float | None
    refused: bool = False


@dataclass(repr=False)
class TaskState:
    """A task and the best program known for it. `resumed`: trials found in the records; `trials`: those plus the ones measured since.

    `guess`: the program used when nothing valid is known, once asked for.
    `left_out`: records of the workload that do not count here, by reason.
    `by_origin`: cost of the fastest program of the rules, and of each template; `failures`: failed trials, by kind.
    `best_at`: trials when the best was found; `searched`: whether the search chose the last round; `spent`: seconds of the finished searched rounds of this
    run, with `timed` trials. The round of picks includes the reference and the first compilation, so it says nothing about the pace.
    `first_failure`: the failure of the first failed trial.
    `refused`: the run found no program that the target allows, and reported it.
    `counters`: other counts of the device for the best program, if this run measured it.
    `leaders`: the fastest measured programs, best first (`leading`).
    """

    task: SearchTask
    weight: float = 1.0
    best: Best | None = None
    guess: Guess | None = None
    trials: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    resumed: int = field(default=0, init=False)
    rounds: int = field(default=0, init=False)
    best_at: int = field(default=0, init=False)
    searched: bool = field(default=False, init=False)
    spent: float = field(default=0.0, init=False)
    timed: int = field(default=0, init=False)
    by_origin: dict[str, float] = field(default_factory=dict, init=False)
    counters: dict[str, float] = field(default_factory=dict, init=False)
    refused: bool = field(default=False, init=False)
    first_failure: Failure | None = field(default=None, init=False)
    leaders: tuple[Best, ...] = field(default=(), init=False)

    @property
    def cost(self) -> float | None:
        """The best cost so far."""
        return None if self.best is None else self.best.cost

    @property
    def unit(self) -> Unit:
        """The unit of its costs."""
        return SECONDS if self.best is None else self.best.unit

    @property
    def fewer_operations(self) -> bool:
        """Whether the best program needs fewer operations than the declared ones in `task.flop`, as with Winograd's algorithm."""
        return self.best is not None and self.best.sketch.dag.flop < self.task.flop

    def note(self, outcome: Outcome, failure: Failure | None, unit: Unit = SECONDS) -> None:
        """Count a finished trial, and keep it if it is the best."""
        self.trials += 1
        if failure is not None:
            self.failures[failure.kind] += 1
            self.first_failure = self.first_failure or failure
        if outcome.cost is not None:
            origin = origin_of(self.task.spaces[outcome.pick.space].algorithm)
            self.by_origin[origin] = min(outcome.cost, self.by_origin.get(origin, math.inf))
            self.leaders = leading(self.task, self.leaders, outcome, unit)
        if outcome.cost is not None and (self.best is None or outcome.cost < self.best.cost):
            self.best, self.best_at = best_of(self.task, outcome, unit), self.trials

    def __repr__(self) -> str:
        best = "no valid program yet" if self.best is None else f"best {self.unit.text(self.best.cost)}"
        failed = f", {sum(self.failures.values())} failed" if self.failures else ""
        return f"TaskState({self.task.name}: {best}, {counted(self.trials, 'trial')}{failed}, weight {self.weight:g})"


def best_of(task: SearchTask, outcome: Outcome, unit: Unit = SECONDS) -> Best:
    """The program of a valid trial."""
    assert outcome.cost is not None
    space = task.spaces[outcome.pick.space]
    return Best(space.sketch, outcome.pick.row, outcome.cost, origin_of(space.algorithm), unit)


def leading(task: SearchTask, known: Sequence[Best], outcome: Outcome, unit: Unit = SECONDS) -> tuple[Best, ...]:
    """The leaders with the program of a valid trial, if it is one: at most `LEADERS` programs, none slower than the fastest by more than `NEAR`."""
    assert outcome.cost is not None
    if known and outcome.cost > NEAR * known[0].cost:
        return tuple(known)
    new = best_of(task, outcome, unit)
    others = [one for one in known if (one.sketch, one.row) != (new.sketch, new.row)]
    found = sorted([*others, new], key=lambda one: one.cost)
    return tuple(one for one in found[:LEADERS] if one.cost <= NEAR * found[0].cost)


def best_of_recorded(task: SearchTask, found: RecordedTrials) -> Best | None:
    """The fastest program that a file knows for a task; None without a valid one."""
    return None if found.best is None else best_of(task, found.best, found.unit)


def origins_of(task: SearchTask) -> list[str]:
    """The rules and templates that a task has sketches of, in order."""
    return list(dict.fromkeys(origin_of(space.algorithm) for space in task.spaces))
