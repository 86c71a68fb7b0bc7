"""The clock of a run: how long trials take, how many still fit, and their expected gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ansor.run.budget import Budget
from ansor.run.options import ROUND, SMALL_ROUND
from ansor.run.states import TaskState
from ansor.search.expected_gain import Prospect, gain_of_rest

FIRST_PACE = 0.5
"""The assumed seconds per trial before the first one. Some take a tenth of this, the first of a run longer."""


class Pace:
    """What the budget still allows. `over`: whether the task with that number has nothing left to try. `started`: when the run began, by
    default now."""

    def __init__(
        self, budget: Budget, states: Sequence[TaskState], clock: Callable[[], float], over: Callable[[int], bool], started: float | None = None
    ) -> None:
        self.budget = budget
        self.states = states
        self.clock = clock
        self.over = over
        self.started = clock() if started is None else started

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    @property
    def trials(self) -> int:
        """Trials of all tasks, including recorded ones."""
        return sum(state.trials for state in self.states)

    @property
    def seconds_left(self) -> float:
        """Seconds left; infinite without a time limit."""
        return self.budget.seconds_left(self.elapsed)

    def of(self, state: TaskState | None) -> float:
        """Seconds per trial in this run: for the task, or over all tasks if no round of it has ended yet or None is given."""
        known = [one for one in ([state] if state is not None else self.states) if one.timed and one.spent > 0]
        if not known:
            return FIRST_PACE if state is None else self.of(None)
        return sum(one.spent for one in known) / sum(one.timed for one in known)

    @property
    def known(self) -> float | None:
        """Seconds per trial in rounds of searched programs; None before such a round has ended."""
        return self.of(None) if any(one.timed for one in self.states) else None

    def round_size(self, state: TaskState, done: int, size: int) -> int:
        """The trials of a round: the usual size, or what still fits. With several tasks, a round takes at most half of its task's share of the budget."""
        elapsed = self.elapsed
        fits = max(1.0, self.budget.fitting(done, elapsed, self.of(state)))
        if len(self.states) == 1:
            return int(min(ROUND, size, fits))
        whole = min(self.budget.trials or math.inf, done + self.budget.fitting(done, elapsed, self.of(None)))
        return int(min(SMALL_ROUND, size, max(1, whole // (2 * len(self.states))), fits))

    def gain_of_rest(self) -> float | None:
        """The share of the kernels' total time that the rest of the budget is expected to save; None while a task has no valid program yet."""
        done, elapsed = self.trials, self.elapsed
        gains = []
        if self.budget.trials is not None:
            gains.append(self.gain(self.budget.trials_left(done), timed=False))
        if self.budget.seconds is not None:
            gains.append(self.gain(self.budget.seconds_left(elapsed), timed=True))
        return min((gain for gain in gains if gain is not None), default=None)

    def gain(self, budget: float, timed: bool) -> float | None:
        """The expected gain of `budget` more trials, or seconds if `timed`. A task with nothing left to try counts in the total but gains nothing."""
        prospects = []
        for index, state in enumerate(self.states):
            over = self.over(index)
            if state.best is None and not over:
                return None
            if state.best is not None:
                cost = math.inf if over else self.of(state) if timed else 1.0
                prospects.append(Prospect(state.weight * state.best.cost, state.trials, state.trials - state.best_at, cost))
        return gain_of_rest(prospects, budget) if prospects else None
