"""How often two networks are run to compare them."""

from __future__ import annotations

import pytest

from ansor.graph.rivals import ENOUGH_ROUNDS, ENOUGH_SECONDS, ROUNDS, _in_turns


@pytest.mark.parametrize(
    ("seconds", "budget", "rounds"),
    (
        (1e-3, 60.0, ROUNDS),  # short runs
        (0.125, 60.0, ENOUGH_SECONDS / 0.25 - 1),  # until they took long enough; the first round only warms up
        (1.0, 60.0, ENOUGH_ROUNDS),  # and were enough rounds
        (1.0, 7.0, 3),  # but not for longer than the budget
        (1.0, 1.0, 1),  # a round counts if there is no time for another
    ),
)
def test_rounds_end_with_the_budget_or_when_they_are_enough(seconds: float, budget: float, rounds: float) -> None:
    now = [0.0]

    def run() -> float:
        now[0] += seconds
        return now[0]

    assert [len(found) for found in _in_turns([run, run], budget, lambda: now[0])] == [rounds, rounds]
