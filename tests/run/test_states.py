"""The leaders of a task: its fastest measured programs, and those that a network chooses from."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ansor.measure.failure import Failure
from ansor.run.choosing import contending
from ansor.run.states import LEADERS, NEAR, Best, TaskState
from ansor.search.tuner import Outcome, Pick
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul

TASK = SearchTask(matmul, (64, 64, 64), "cpu -threads=1")
SPACE = max(range(len(TASK.spaces)), key=lambda number: math.prod(map(int, TASK.spaces[number].sizes)))


def _outcome(number: int, cost: float | None) -> Outcome:
    """A trial of the program of that number."""
    row = [0] * len(TASK.spaces[SPACE].sizes)
    for place, size in enumerate(TASK.spaces[SPACE].sizes):
        number, row[place] = divmod(number, int(size))
    return Outcome(Pick(SPACE, tuple(row)), cost, None if cost is not None else "crash")


@given(st.lists(st.one_of(st.none(), st.integers(100, 130)), max_size=12))
def test_leaders_are_the_fastest_programs_near_the_fastest(costs: list[int | None]) -> None:
    state = TaskState(TASK)
    for number, cost in enumerate(costs):
        state.note(_outcome(number, cost), Failure("crash", "") if cost is None else None)
    valid = sorted(cost for cost in costs if cost is not None)
    assert [best.cost for best in state.leaders] == [cost for cost in valid[:LEADERS] if cost <= NEAR * valid[0]]
    assert (state.best is None) == (not valid) and (not valid or state.leaders[0].cost == state.best.cost)  # type: ignore[union-attr]


def test_a_program_measured_twice_is_one_leader() -> None:
    state = TaskState(TASK)
    for number, cost in ((0, 1.0), (1, 1.01), (0, 1.02), (1, 0.99)):
        state.note(_outcome(number, cost), None)
    assert [best.cost for best in state.leaders] == [0.99, 1.02]


def test_a_network_chooses_among_the_chosen_program_and_other_leaders() -> None:
    state = TaskState(TASK)
    assert contending(state, Best(TASK.spaces[0].sketch, (), math.inf))[1:] == ()
    for number in range(3):
        state.note(_outcome(number, 1.0 + number / 100), None)
    assert state.best is not None
    found = contending(state, state.best)
    assert [best.cost for best in found] == [1.0, 1.01, 1.02]
