"""How long a tuning run may last: trials, minutes or both, whichever ends first. A budget is a value, independent of any clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ansor.errors import BudgetError
from ansor.tasks.arguments import is_whole

MIN_GAIN = 0.01
"""If only the time is limited, a run stops when the time left is expected to improve the program by less than this."""

FEWEST_TRIALS = 64
"""No run ends early for lack of expected gain before this many trials per task: the expectation is a mean over operators, and few trials say little."""


@dataclass(frozen=True)
class Budget:
    """trials: over all tasks, including recorded ones; seconds: wall time from the start of the run. One of them may be None, for no limit.

    min_gain: the run ends when the rest is expected to save less than this share of the programs' time; 0 always uses the whole budget.
    """

    trials: int | None = None
    seconds: float | None = None
    min_gain: float = 0.0

    @staticmethod
    def of(trials: int | None = None, minutes: float | None = None, min_gain: float | None = None) -> Budget:
        """A budget from user arguments. With only minutes, min_gain defaults to MIN_GAIN; given trials are all run by default. Raises BudgetError."""
        if trials is None and minutes is None:
            raise BudgetError("asked to tune without a budget; give trials=, minutes= or both")
        if trials is not None and not is_whole(trials, 0):
            raise BudgetError(f"asked to tune for trials={trials!r}; give 0, which measures nothing, or a positive whole number")
        if minutes is not None and not _is_number(minutes, above=0.0):
            raise BudgetError(f"asked to tune for minutes={minutes!r}; give a number above 0, such as minutes=10, or leave it out")
        if min_gain is not None and not (_is_number(min_gain, above=-1.0) and 0.0 <= min_gain < 1.0):
            raise BudgetError(f"asked for min_gain={min_gain!r}; give a share from 0 (never stop early) to below 1, such as min_gain=0.01 for 1 %")
        default = MIN_GAIN if trials is None else 0.0
        return Budget(None if trials is None else int(trials), None if minutes is None else 60.0 * minutes, default if min_gain is None else min_gain)

    def split(self, sizes: Sequence[int]) -> list[Budget]:
        """The budgets of parts of a run, by their sizes: their trials add up to all trials, and each may take all the time."""
        if self.trials is None:
            return [self] * len(sizes)
        ends = [self.trials * sum(sizes[:number]) // sum(sizes) for number in range(len(sizes) + 1)]
        return [replace(self, trials=end - start) for start, end in pairwise(ends)]

    def trials_left(self, trials: int) -> float:
        """Trials left after `trials`; infinite without a limit."""
        return math.inf if self.trials is None else max(self.trials - trials, 0)

    def seconds_left(self, elapsed: float) -> float:
        """Seconds left after `elapsed`; infinite without a limit."""
        return math.inf if self.seconds is None else max(self.seconds - elapsed, 0.0)

    def is_used(self, trials: int, elapsed: float) -> bool:
        """Whether no further trial fits."""
        return self.trials_left(trials) <= 0 or self.seconds_left(elapsed) <= 0

    def fitting(self, trials: int, elapsed: float, seconds_per_trial: float) -> float:
        """Trials that still fit at that pace: not necessarily a whole number; infinite without any limit."""
        by_time = math.inf if self.seconds is None else self.seconds_left(elapsed) / max(seconds_per_trial, 1e-9)
        return min(self.trials_left(trials), by_time)

    def share(self, trials: int, elapsed: float) -> float | None:
        """The used share of the budget, 0 to 1; None without a time limit, in which case each task counts its trials."""
        if self.seconds is None:
            return None
        of_trials = 0.0 if self.trials is None else trials / max(self.trials, 1)
        return min(max(elapsed / self.seconds, of_trials), 1.0)


def _is_number(value: object, above: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < math.inf
