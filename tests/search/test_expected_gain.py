import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.search.expected_gain import PATIENCE, SLOPE, Prospect, expected_gain, gain_of_rest


def test_doubling_the_trials_always_gains_the_same() -> None:
    once = expected_gain(64, 0, 64)
    assert once == pytest.approx(1 - 2**-SLOPE)
    assert expected_gain(100, 0, 300) == pytest.approx(1 - (1 - once) ** 2)


def test_more_trials_gain_more_and_late_or_stuck_tasks_less() -> None:
    assert expected_gain(64, 0, 16) < expected_gain(64, 0, 32)
    assert expected_gain(128, 0, 16) < expected_gain(64, 0, 16)
    assert expected_gain(128, PATIENCE, 16) == pytest.approx(expected_gain(128, 0, 16) / 2, rel=1e-2)
    assert expected_gain(512, 4 * PATIENCE, 16) < expected_gain(512, 0, 16) / 200


@pytest.mark.parametrize(("trials", "more"), [(0, 16), (16, 0), (16, -3)])
def test_nothing_is_expected_of_nothing(trials: int, more: int) -> None:
    assert expected_gain(trials, 0, more) == 0


def test_one_task_gets_the_whole_rest() -> None:
    assert gain_of_rest([Prospect(1e-3, 40, 8, 0.5)], 10) == pytest.approx(expected_gain(40, 8, 20))


def test_equal_tasks_share_and_a_small_one_waits() -> None:
    equal = [Prospect(1.0, 32, 0), Prospect(1.0, 32, 0)]
    assert gain_of_rest(equal, 64) == pytest.approx(expected_gain(32, 0, 32))
    unequal = [Prospect(1.0, 32, 0), Prospect(0.01, 32, 0)]
    assert gain_of_rest(unequal, 32) == pytest.approx(expected_gain(32, 0, 32) / 1.01)


def test_a_task_that_is_over_counts_in_the_sum_only() -> None:
    assert gain_of_rest([Prospect(1.0, 32, 0), Prospect(3.0, 32, 0, math.inf)], 32) == pytest.approx(expected_gain(32, 0, 32) / 4)
    assert gain_of_rest([Prospect(1.0, 32, 0, math.inf)], 32) == 0
    assert gain_of_rest([], 32) == 0


PROSPECTS = st.lists(
    st.builds(Prospect, st.floats(1e-6, 10.0), st.integers(1, 500), st.integers(0, 300), st.floats(0.01, 10.0)), min_size=1, max_size=6
)


@given(PROSPECTS, st.floats(0.1, 1e4))
def test_no_other_split_is_better(prospects: list[Prospect], budget: float) -> None:
    total = sum(one.best for one in prospects)
    best = gain_of_rest(prospects, budget)
    assert 0 <= best < 1 and gain_of_rest(prospects, 2 * budget) >= best
    equally = sum(one.best * expected_gain(one.trials, one.since, budget / len(prospects) / one.cost) for one in prospects) / total
    alone = max(one.best * expected_gain(one.trials, one.since, budget / one.cost) / total for one in prospects)
    # The split is best for slope * log, of which the gain falls short by its square; that is what the slack is for.
    assert best >= max(equally, alone) * (1 - SLOPE * math.log1p(budget / min(one.cost for one in prospects)))
