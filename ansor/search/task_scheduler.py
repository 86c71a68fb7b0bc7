"""Which task of a network to tune next: the one whose next trials are expected to lower the objective most for what they cost. Pure; no clock.

The caller tunes one round of the task `next_task` names and reports it by `told`. Every task gets a first round before any gets a third. A task without a
valid program is retried at growing intervals, and given up after some attempts; exhausted tasks are not named again. So no task can stall the others.
"""

import math
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ansor.search.expected_gain import expected_gain

Objective = Callable[[Sequence[float]], float]
"""From the best seconds of every task to the number to minimise; must be finite for finite positive seconds."""

STRATEGIES = ("expected-gain", "round-robin")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """`weight`: how often the task occurs in the network."""

    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """`ahead`: trials over which gains are compared, a round or so. `valid_attempts`: rounds a task may take to get its first valid program; after the
    n-th the next comes no sooner than 2 ** n rounds later, unless nobody else has anything to do.
    `early_stop`: stop after so many trials without a better objective; `task_early_stop`: likewise for one task, which dies.
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
    best_at: int = 0  # trials told when the best was
    last: int = 0  # rounds of all tasks told when its last was
    timed: int = 0  # trials whose tuning seconds were told
    seconds: float = 0.0  # those
    exhausted: bool = False


class TaskScheduler:
    """Spends rounds on tasks. `objective`: None = sum of weight * best seconds.

    Raises ValueError for no task or an unknown strategy.
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
        """The task to tune a round of, none of those that have one on its way; None when every other task is dead or the early stop is reached."""
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
        """A round of task `index` ended: its best time so far (None = no valid program yet), and the trials the round took.

        since: trials after the best one, where that is known better than by rounds; seconds: what the round took, where the budget is one of time.
        Also for the rounds of an earlier run, one call each, before the first `next_task`.
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
        """The objective over the best times; None until each task has been told of or died, and while none is valid.

        A task that died without a valid program counts as the slowest known time: it cannot be improved here anyway.
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

    def rounds(self, index: int) -> int:
        """Rounds told of this task."""
        return self._progress[index].rounds

    def expected_gain(self, index: int) -> float:
        """How much the objective is expected to fall for each further trial (each second of tuning, where seconds are told), never negative; 0 for a
        dead task."""
        progress = self._progress[index]
        if not self.alive(index) or not math.isfinite(progress.best):
            return 0.0
        share = expected_gain(progress.trials, progress.trials - progress.best_at, self.options.ahead)
        return max(self._slope(index, progress.best) * progress.best * share, 0.0) / (self.options.ahead * self._cost(progress))

    def _cost(self, progress: _Progress) -> float:
        """Of a trial: seconds, those of the other tasks where this one's were not told; 1 where none were."""
        if progress.timed and progress.seconds > 0:
            return progress.seconds / progress.timed
        timed = sum(other.timed for other in self._progress)
        seconds = sum(other.seconds for other in self._progress)
        return seconds / timed if timed and seconds > 0 else 1.0

    def _slope(self, index: int, best: float) -> float:
        """d(objective) / d(seconds of the task), by a step relative to its time: operators take microseconds."""
        times = self._times()
        step = max(1e-3 * best, sys.float_info.min)  # a time may be as small as a number gets
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
