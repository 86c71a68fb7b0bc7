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
from ansor.tasks.recorded import Recorded
from ansor.tasks.task import SearchTask


@dataclass(frozen=True, repr=False)
class Best:
    """The fastest program of a task: its sketch, its row, and the cost of one run; who made it, "" for the plain declaration."""

    sketch: Sketch
    row: tuple[int, ...]
    cost: float
    origin: str = ""
    unit: Unit = SECONDS

    def __repr__(self) -> str:
        measured = self.unit.text(self.cost) if math.isfinite(self.cost) else "not measured"
        return f"Best({measured}, {self.origin or 'the declaration as it is'}, row={self.row})"


@dataclass(frozen=True)
class Spent:
    """How much of the budget is used.

    trials: of the budget, those continued from included; measured: by this run; budget: trials, None where only the time is limited; elapsed: seconds;
    left: seconds of the time, None where only trials are limited; pace: seconds a trial takes where programs are searched for, None before that is known.
    """

    trials: int
    measured: int
    budget: int | None
    elapsed: float
    left: float | None = None
    pace: float | None = None


@dataclass(frozen=True)
class Reached:
    """What all tasks have come to.

    tasks: how many there are; waiting: those without a valid program yet; cost, flop: of one run of all the others, as often as they are used, each kernel
    timed alone with warm caches. fewer_operations: some of these programs need fewer operations than `flop`, which counts them as declared.
    """

    tasks: int
    waiting: int
    cost: float
    flop: float
    fewer_operations: bool = False
    unit: Unit = SECONDS


@dataclass(frozen=True, repr=False)
class Progress:
    """Where a run stands, after a trial of `task`: all that `spent` and `reached` have can be asked of it.

    latest: that trial; failures: by kind; gain: share of the time of all kernels that the rest of the budget is expected to save, None before that can be said.
    devices: where there are several, what they do, a line for each.
    """

    task: SearchTask
    latest: Measurement
    spent: Spent
    reached: Reached
    failures: Mapping[str, int] = field(default_factory=dict)
    gain: float | None = None
    devices: Sequence[str] = ()

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
class Guess:
    """A program that was chosen without measuring. how: it was chosen, in words. confidence: the share of the speed of a tuned program that it is
    expected to have, None where nothing is known of that. refused: the target's limits, or the pins, leave no other program."""

    program: Best
    how: str
    confidence: float | None
    refused: bool = False


@dataclass(repr=False)
class TaskState:
    """A task and the best program known for it. `resumed`: trials found in the records, `trials`: those and the ones measured since.

    `guess`: what serves where nothing valid is known, once that was asked for.
    `left_out`: records of the workload that do not count here, by reason.
    `by_origin`: cost of the fastest program of the rules, and of each template; `failures`: trials that failed, by kind.
    `best_at`: trials when the best was found; `searched`: whether the last round had more than picks; `spent`: seconds of those rounds of this run that ended,
    of `timed` trials. In the round of picks are the reference and the first compilation, so that it says nothing of the pace.
    `first_failure`: why the first trial that failed did.
    `refused`: the run found no program that the target allows, and said so.
    `counters`: what else the device counted of the best program, where this run measured it.
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

    @property
    def cost(self) -> float | None:
        """The best so far."""
        return None if self.best is None else self.best.cost

    @property
    def unit(self) -> Unit:
        """What its costs are in."""
        return SECONDS if self.best is None else self.best.unit

    @property
    def fewer_operations(self) -> bool:
        """Whether the best program needs fewer operations than the declaration, which `task.flop` counts: Winograd's algorithm and its like."""
        return self.best is not None and self.best.sketch.dag.flop < self.task.flop

    def note(self, outcome: Outcome, failure: Failure | None, unit: Unit = SECONDS) -> None:
        """A trial is over: count it, and keep it where it is the best."""
        self.trials += 1
        if failure is not None:
            self.failures[failure.kind] += 1
            self.first_failure = self.first_failure or failure
        if outcome.cost is not None:
            origin = origin_of(self.task.spaces[outcome.pick.space].algorithm)
            self.by_origin[origin] = min(outcome.cost, self.by_origin.get(origin, math.inf))
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


def best_of_recorded(task: SearchTask, found: Recorded) -> Best | None:
    """The fastest of what a file knows of a task; None without a valid one."""
    return None if found.best is None else best_of(task, found.best, found.unit)


def origins_of(task: SearchTask) -> list[str]:
    """The rules and the templates that a task has sketches of, in its order."""
    return list(dict.fromkeys(origin_of(space.algorithm) for space in task.spaces))
