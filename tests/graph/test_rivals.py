"""How often two networks are run to compare them."""

from __future__ import annotations

import pytest

from ansor.graph.rivals import CLEAR_ROUNDS, CLEAR_SECONDS, ENOUGH_ROUNDS, ENOUGH_SECONDS, MARGIN, ROUNDS, in_turns, is_clear


@pytest.mark.parametrize(
    ("seconds", "budget", "rounds"),
    (
        (1e-3, 60.0, ROUNDS),  # short runs
        (0.0625, 60.0, ENOUGH_SECONDS / 0.125 - 1),  # until they took long enough; the first round only warms up
        (1.0, 60.0, ENOUGH_ROUNDS),  # and were enough rounds
        (1.0, 7.0, 3),  # but not for longer than the budget
        (1.0, 1.0, 1),  # a round counts if there is no time for another
    ),
)
def test_rounds_end_with_the_budget_or_when_they_are_enough(seconds: float, budget: float, rounds: float) -> None:
    assert turns(seconds, budget, clear=False) == [rounds, rounds]


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    (
        (1e-3, CLEAR_SECONDS / 2e-3 - 1),  # short runs, as long as they take nearly no time
        (1.0, CLEAR_ROUNDS),
    ),
)
def test_rounds_end_sooner_when_the_results_are_clear(seconds: float, rounds: float) -> None:
    assert turns(seconds, 60.0, clear=True) == [min(rounds, ROUNDS)] * 2


def turns(seconds: float, budget: float, *, clear: bool) -> list[int]:
    """The number of results of each of two runs that take so many seconds."""
    now = [0.0]

    def run() -> float:
        now[0] += seconds
        return now[0]

    return [len(found) for found in in_turns([run, run], budget, lambda: now[0], lambda _: clear)]


@pytest.mark.parametrize(
    ("theirs", "clear"),
    (
        (2.0, True),  # slower in every run
        (1.0 + (MARGIN - 1) / 2, False),
        (1.0, False),
        (0.97, False),  # faster, but not by enough to be sure of the margin
        (0.5, True),
    ),
)
def test_times_that_do_not_overlap_are_clear(theirs: float, clear: bool) -> None:
    ours = [1.0, 1.01, 1.02, 5.0]
    assert is_clear(ours, [theirs * one for one in ours]) == clear
    assert not is_clear([1.0, 1.0, 1.0, 3.0], [0.9, 2.0, 2.0, 2.0]), "one fast run may be luck"
