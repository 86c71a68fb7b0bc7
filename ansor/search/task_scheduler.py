"""Chooses which task of a network to tune next: the one whose next trials are expected to lower the objective most for their cost. Pure; no clock.

The caller tunes one round of the task that `next_task` names and reports it with `told`. Every task gets a first round before any gets a third. A task without
a valid program is retried at growing intervals and given up after some attempts; exhausted tasks are not named again. So no task can stall the others.
"""

import math
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ansor.search.expected_gain import expected_gain

Objective = Callable[[Sequence[float]], float]
"""Maps the best seconds of every task to the number to minimise; must be finite for finite positive seconds."""

STRATEGIES = ("expected-gain", "round-robin")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """`weight`: how often the task occurs in the network."""

    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """`ahead`: the number of trials over which gains are compared, about a round. `valid_attempts`: the most rounds without a valid program; after the
    n-th, the next comes no sooner than 2 ** n rounds later, unless no other task can be tuned.
    `early_stop`: stop after this many trials without a better objective; `task_early_stop`: the same for one task, which then dies.
    """

    strategy: str = "expected-gain"
    ahead: int = 8
    valid_attempts: int = 6
    early_stop: int | None = None
    task_early_stop: int | None = None


@dataclass(slots=True)
class _Progress:
    best: float = math.inf  # seconds; infinity while no program is valid
    rounds: int = 0
    trials: int = 0
    best_at: int = 0  # its trials when the best was found
    last: int = 0  # rounds of all tasks at its last round
    timed: int = 0  # trials with known tuning time
    seconds: float = 0.0  # the tuning time of those
    exhausted: bool = False


class TaskScheduler:
    """Allots rounds to tasks. `objective`: None = sum of weight * best seconds.

    Raises ValueError without tasks or for an unknown strategy.
    """

    def __init__(self, tasks: Sequence[TaskInfo], *, objective: Objective | None = None,
                 options: SchedulerOptions | None = None) -> None:
        self.options = options or SchedulerOptions()
        if not tasks:
            raise ValueError("asked to schedule no task: extract at least one from the model")
        if self.options.strategy not in STRATEGIES:
            raise ValueError(f"asked for the strategy {self.options.strategy!r}: use one of {', '.join(STRATEGIES)}")
        self._tasks = tuple(tasks)
        self._objective = objective or self._weighted_sum
        self._progress = [_Progress() for _ in tasks]
        self._last = -1
        self._rounds = 0
        self._trials = 0
        self._improved_at = 0
        self._lowest = math.inf

    def next_task(self, busy: Collection[int] = ()) -> int | None:
        """The task to tune next, except those in `busy`; None when every other task is dead or the early stop is reached."""
        alive = [index for index in range(len(self._tasks)) if index not in busy and self.alive(index)]
        if not alive or self._stopped():
            return None
        if self.options.strategy == "round-robin":
            return min(alive, key=lambda index: (index <= self._last, index))
        fresh = [index for index in alive if not self._progress[index].rounds]
        if fresh:
            return fresh[0]
        known = [index for index in alive if math.isfinite(self._progress[index].best)]
        due = [index for index in alive if index not in known and (not known or self._is_due(index))]
        if due:
            return min(due, key=lambda index: (self._progress[index].rounds, index))
        return min(known, key=lambda index: (-self.expected_gain(index), self._progress[index].rounds, index))

    def _is_due(self, index: int) -> bool:
        progress = self._progress[index]
        return self._rounds - progress.last >= 1 << progress.rounds

    def told(
        self, index: int, best_seconds: float | None, trials: int, exhausted: bool = False, *, since: int | None = None, seconds: float | None = None
    ) -> None:
        """Report a finished round of task `index`: its best time so far (None = no valid program yet), and the trials of the round.

        since: trials after the best one, if known more precisely than by round; seconds: the duration of the round, if the budget is limited by time.
        Rounds of an earlier run are reported the same way, one call each, before the first `next_task`.
        """
        progress = self._progress[index]
        found = best_seconds if best_seconds is not None and 0 < best_seconds < math.inf else math.inf
        progress.trials += trials
        if found < progress.best:
            progress.best, progress.best_at = found, progress.trials - (since or 0)
        if seconds is not None:
            progress.seconds, progress.timed = progress.seconds + seconds, progress.timed + trials
        progress.rounds += 1
        progress.exhausted = exhausted or trials <= 0
        self._rounds += 1
        progress.last = self._rounds
        self._last = index
        self._trials += trials
        value = self.objective
        if value is not None and value < self._lowest:
            self._lowest, self._improved_at = value, self._trials

    @property
    def objective(self) -> float | None:
        """The objective over the best times; None until each task has a valid program or has died, and while no program is valid.

        A task that died without a valid program counts with the slowest known time: it cannot be improved here anyway.
        """
        waiting = any(self.alive(index) and not math.isfinite(progress.best)
                      for index, progress in enumerate(self._progress))
        known = any(math.isfinite(progress.best) for progress in self._progress)
        return self._objective(self._times()) if known and not waiting else None

    def alive(self, index: int) -> bool:
        """Whether the task may be named again."""
        progress = self._progress[index]
        if progress.exhausted:
            return False
        if not math.isfinite(progress.best):
            return progress.rounds < self.options.valid_attempts
        patience = self.options.task_early_stop
        return patience is None or progress.trials - progress.best_at < patience

    def expected_gain(self, index: int) -> float:
        """How much the objective is expected to fall per further trial (per second of tuning, if seconds are reported), never negative; 0 for a
        dead task."""
        progress = self._progress[index]
        if not self.alive(index) or not math.isfinite(progress.best):
            return 0.0
        share = expected_gain(progress.trials, progress.trials - progress.best_at, self.options.ahead)
        return max(self._slope(index, progress.best) * progress.best * share, 0.0) / (self.options.ahead * self._cost(progress))

    def _cost(self, progress: _Progress) -> float:
        """The cost of a trial: its seconds, or those of the other tasks if unknown for this one; 1 if unknown for all."""
        if progress.timed and progress.seconds > 0:
            return progress.seconds / progress.timed
        timed = sum(other.timed for other in self._progress)
        seconds = sum(other.seconds for other in self._progress)
        return seconds / timed if timed and seconds > 0 else 1.0

    def _slope(self, index: int, best: float) -> float:
        """d(objective) / d(seconds of the task), by a step relative to its time: operators take microseconds."""
        times = self._times()
        step = max(1e-3 * best, sys.float_info.min)  # a time may be the smallest float
        faster = [*times[:index], best - step, *times[index + 1:]]
        return (self._objective(times) - self._objective(faster)) / step

    def _times(self) -> list[float]:
        """Best seconds of each task; one without a valid program counts as the slowest known."""
        known = [progress.best for progress in self._progress if math.isfinite(progress.best)]
        slowest = max(known, default=1.0)
        return [progress.best if math.isfinite(progress.best) else slowest for progress in self._progress]

    def _weighted_sum(self, times: Sequence[float]) -> float:
        return sum(task.weight * seconds for task, seconds in zip(self._tasks, times, strict=True))

    def _stopped(self) -> bool:
        patience = self.options.early_stop
        return patience is not None and self.objective is not None and self._trials - self._improved_at >= patience
