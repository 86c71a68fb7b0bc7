"""How much faster a task is likely to get with more trials. Pure; the constants come from recorded runs.

Best-so-far curves of many operators follow one law: the best time falls with a small power of the number of trials, so that each equal gain costs
twice as many trials. Recent gains of a task say little about its next ones (using them in the fit does not improve predictions for unseen operators),
except that a task without improvement for very long is probably done. Hence there are only two constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SLOPE = 0.042
PATIENCE = 64
"""Fitted by `benchmarks/expected_gain.py` to the best-so-far curves of 80 operators on one thread of a Zen 5 core, equally weighted: all over 64 trials, 23 of
them, not chosen at random, over 200. With SLOPE, the expected gains over the next 16, 32 and 64 trials have the mean of the observed gains; with PATIENCE,
so do those after 64 trials without a better program. The script prints expected next to observed gains. These are only means: half of the tasks gain
nothing in a round of 16, while others gain a tenth."""


def expected_gain(trials: int, since: int, more: float) -> float:
    """The share of a task's best time that `more` trials are expected to save: 0.02 means 2 % faster.

    trials: trials so far, at least 1; since: how many of them came after the best one. Increases with `more`, decreases with the other two.
    """
    if trials < 1 or more <= 0:
        return 0.0
    return -math.expm1(-_slope(since) * math.log1p(more / trials))


def _slope(since: int) -> float:
    return SLOPE / (1.0 + (since / PATIENCE) ** 4)


@dataclass(frozen=True, slots=True)
class Prospect:
    """A task that has a program. best: its best cost times its uses; trials, since: as above; cost: the cost of one trial, in any unit, infinite for
    a task with nothing left to try."""

    best: float
    trials: int
    since: int
    cost: float = 1.0


def gain_of_rest(prospects: Sequence[Prospect], budget: float) -> float:
    """The share of the total cost that `budget` (in the unit of trial costs) is expected to save if each trial goes where it saves most.

    With n more trials, a task saves about best * slope * log(1 + n / trials), at a final rate of best * slope / ((trials + n) * cost). In the best
    split, all tasks that get trials have the same final rate. So tasks join in order of their rates, and the budget equalises the rates of those that joined.
    """
    total = sum(one.best for one in prospects)
    if total <= 0 or budget <= 0:
        return 0.0
    joining = sorted((one for one in prospects if one.cost < math.inf), key=lambda one: _tried(one) * one.cost / _value(one))
    value = spent = level = 0.0
    for number, one in enumerate(joining, 1):
        value += _value(one)
        spent += _tried(one) * one.cost
        level = (budget + spent) / value  # 1 / rate
        if number == len(joining) or level <= _tried(joining[number]) * joining[number].cost / _value(joining[number]):
            break
    return sum(one.best * expected_gain(_tried(one), one.since, level * _value(one) / one.cost - _tried(one)) for one in prospects) / total


def _tried(one: Prospect) -> int:
    return max(one.trials, 1)


def _value(one: Prospect) -> float:
    return max(one.best * _slope(one.since), 1e-300)  # a time may be the smallest float
