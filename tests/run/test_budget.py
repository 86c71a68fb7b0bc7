import math

import pytest

from ansor.errors import BudgetError
from ansor.run.budget import MIN_GAIN, Budget


def test_who_asks_for_trials_gets_them_all_and_who_asks_for_minutes_may_be_stopped() -> None:
    assert Budget.of(trials=5) == Budget(5, None, 0.0)
    assert Budget.of(minutes=2) == Budget(None, 120.0, MIN_GAIN)
    assert Budget.of(trials=5, minutes=0.5) == Budget(5, 30.0, 0.0)
    assert Budget.of(minutes=2, min_gain=0).min_gain == 0
    assert Budget.of(trials=5, min_gain=0.2).min_gain == 0.2


@pytest.mark.parametrize("minutes", [0, -1, math.nan, math.inf, "ten", True])
def test_minutes_that_are_none(minutes: float) -> None:
    with pytest.raises(BudgetError, match=r"minutes=.*give a number above 0, such as minutes=10"):
        Budget.of(minutes=minutes)


@pytest.mark.parametrize("gain", [-0.1, 1, math.nan, "1 %", True])
def test_gains_that_are_none(gain: float) -> None:
    with pytest.raises(BudgetError, match="a share from 0"):
        Budget.of(minutes=1, min_gain=gain)


@pytest.mark.parametrize("trials", [-1, 1.5, True])
def test_trials_that_are_none(trials: int) -> None:
    with pytest.raises(BudgetError, match="trials=.*; give 0, which measures nothing, or a positive whole number"):
        Budget.of(trials)


def test_no_budget() -> None:
    with pytest.raises(BudgetError, match="give trials=, minutes= or both"):
        Budget.of()


def test_whichever_ends_first() -> None:
    both = Budget(100, 60.0)
    assert not both.is_used(99, 59.0)
    assert both.is_used(100, 0.0) and both.is_used(0, 60.0)
    assert both.fitting(40, 20.0, 1.0) == 40 and both.fitting(90, 20.0, 1.0) == 10
    assert Budget(None, 60.0).fitting(1000, 59.0, 0.5) == 2 and Budget(100).fitting(40, 1e9, 1.0) == 60


def test_the_share_used_is_that_of_the_nearer_end_and_none_without_time() -> None:
    assert Budget(100).share(50, 1.0) is None
    assert Budget(None, 60.0).share(50, 15.0) == 0.25
    assert Budget(100, 60.0).share(50, 15.0) == 0.5
    assert Budget(None, 60.0).share(50, 90.0) == 1.0


def test_parts_of_a_budget_add_up_to_it() -> None:
    assert [part.trials for part in Budget(31, 60.0, 0.1).split([2, 3])] == [12, 19]
    assert all(sum(part.trials or 0 for part in Budget(trials).split([3, 1, 2])) == trials for trials in range(20))
    assert Budget(31, 60.0, 0.1).split([1, 1])[0] == Budget(15, 60.0, 0.1) and Budget(5).split([7]) == [Budget(5)]
    assert Budget(None, 60.0).split([1, 2]) == [Budget(None, 60.0)] * 2
