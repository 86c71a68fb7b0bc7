"""Which task of a network to tune next: the one whose next round is expected to lower the objective most. Pure; no clock.

The caller tunes one round of the task `next_task` names and reports it by `told`. Tasks that are exhausted, or never get a valid
program, die and are not named again, so none can stall the rest.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Objective = Callable[[Sequence[float]], float]
"""From the best seconds of every task to the number to minimise; must be finite for finite positive seconds."""

STRATEGIES = ("gradient", "round-robin")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """`weight`: how often the task occurs in the network. `flops` of one run, and `group`: tasks of one group (None = alone) are taken to
    be able to reach similar FLOP/s.
    """

    weight: float = 1.0
    flops: float = 0.0
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """`alpha`: share of the past's trend against the forecast; `beta`: how far a task may lag its group's best FLOP/s;
    `window`: rounds the trend looks back. `valid_attempts`: rounds a task may take to get its first valid program.
    `early_stop`: stop after so many trials without a better objective; `task_early_stop`: likewise for one task, which dies.
    """

    strategy: str = "gradient"
    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    valid_attempts: int = 3
    early_stop: int | None = None
    task_early_stop: int | None = None


@dataclass(slots=True)
class _Progress:
    history: list[float] = field(default_factory=list)  # best seconds after each round; infinity while none is valid
    trials: int = 0
    best_at: int = 0
    exhausted: bool = False

    @property
    def best(self) -> float:
        return self.history[-1] if self.history else math.inf


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
        self._trials = 0
        self._improved_at = 0
        self._lowest = math.inf

    def next_task(self) -> int | None:
        """The task to tune a round of; None when every task is dead or the early stop is reached."""
        alive = [index for index in range(len(self._tasks)) if self.alive(index)]
        if not alive or self._stopped():
            return None
        if self.options.strategy == "round-robin":
            return min(alive, key=lambda index: (index <= self._last, index))
        unknown = [index for index in alive if not math.isfinite(self._progress[index].best)]
        if unknown:  # the warm-up: everyone a round, and those without a valid program their few more attempts
            return min(unknown, key=lambda index: (len(self._progress[index].history), index))
        return min(alive, key=lambda index: (-self.expected_gain(index), len(self._progress[index].history), index))

    def told(self, index: int, best_seconds: float | None, trials: int, exhausted: bool = False) -> None:
        """A round of task `index` ended: its best time so far (None = no valid program yet), and the trials the round took.

        Also for the rounds of an earlier run, one call each, before the first `next_task`.
        """
        progress = self._progress[index]
        found = best_seconds if best_seconds is not None and 0 < best_seconds < math.inf else math.inf
        progress.trials += trials
        if found < progress.best:
            progress.best_at = progress.trials
        progress.history.append(min(found, progress.best))
        progress.exhausted = exhausted or trials <= 0
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
            return len(progress.history) < self.options.valid_attempts
        patience = self.options.task_early_stop
        return patience is None or progress.trials - progress.best_at < patience

    def rounds(self, index: int) -> int:
        """Rounds told of this task."""
        return len(self._progress[index].history)

    def expected_gain(self, index: int) -> float:
        """How much a further round of this task is expected to lower the objective, never negative; 0 for a dead task."""
        history = self._progress[index].history
        if not self.alive(index) or not history or not math.isfinite(history[-1]):
            return 0.0
        best = history[-1]
        gain = self.options.alpha * self._trend(history) + (1 - self.options.alpha) * self._forecast(index, best)
        return max(self._slope(index, best) * gain, 0.0)

    def _trend(self, history: list[float]) -> float:
        """Seconds won per round over the last `window` rounds; 0 with too short a history."""
        window = self.options.window
        if len(history) <= window or not math.isfinite(history[-1 - window]):
            return 0.0
        return (history[-1 - window] - history[-1]) / window

    def _forecast(self, index: int, best: float) -> float:
        """Seconds a task can hope to win: best / rounds so far, or more if its group shows what is possible."""
        hope = best / len(self._progress[index].history)
        fastest = self._group_speed(index)
        if fastest <= 0:
            return hope
        return max(hope, best - self.options.beta * self._tasks[index].flops / fastest)

    def _group_speed(self, index: int) -> float:
        """Best FLOP/s reached in the task's group of two or more; 0 if there is none."""
        group = self._tasks[index].group
        members = [other for other, task in enumerate(self._tasks) if group is not None and task.group == group]
        if len(members) < 2:
            return 0.0
        return max(self._tasks[other].flops / self._progress[other].best for other in members)

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
