import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.search.task_scheduler import SchedulerOptions, TaskInfo, TaskScheduler


def spend(scheduler: TaskScheduler, rounds: int, times: Sequence[Sequence[float | None]], trials: int = 1) -> Counter[int]:
    """Counts of tasks named; `times[i][t]` is the best of task i after its round t (the last value goes on)."""
    spent: Counter[int] = Counter()
    for _ in range(rounds):
        index = scheduler.next_task()
        if index is None:
            break
        seconds = times[index][min(spent[index], len(times[index]) - 1)]
        scheduler.told(index, seconds, trials)
        spent[index] += 1
    return spent


def test_objective_of_task_0_only_gets_all_but_the_warm_up() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()], objective=lambda times: times[0])
    assert spend(scheduler, 5, [[1e-3], [1e-3]]) == {0: 4, 1: 1}


def test_round_robin_is_equal() -> None:
    options = SchedulerOptions(strategy="round-robin")
    scheduler = TaskScheduler([TaskInfo() for _ in range(3)], options=options)
    assert spend(scheduler, 9, [[1.0], [2.0], [None, 1.0]]) == {0: 3, 1: 3, 2: 3}


def test_round_robin_skips_the_dead() -> None:
    scheduler = TaskScheduler([TaskInfo() for _ in range(3)], options=SchedulerOptions(strategy="round-robin"))
    scheduler.told(1, 1.0, 4, exhausted=True)
    assert spend(scheduler, 4, [[1.0], [1.0], [1.0]]) == {0: 2, 2: 2}


def test_warm_up_gives_each_task_one_round() -> None:
    scheduler = TaskScheduler([TaskInfo(weight=weight) for weight in (1, 100, 1, 1)])
    assert spend(scheduler, 4, [[1.0]] * 4) == {0: 1, 1: 1, 2: 1, 3: 1}


def test_restored_tasks_need_no_warm_up() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    scheduler.told(0, 1.0, 16)
    assert scheduler.next_task() == 1


@pytest.mark.parametrize("weights, times", [((1, 20), (1.0, 1.0)), ((1, 1), (1e-6, 50e-6))])
def test_heavy_and_slow_tasks_get_more(weights: tuple[float, float], times: tuple[float, float]) -> None:
    scheduler = TaskScheduler([TaskInfo(weight=weight) for weight in weights])
    spent = spend(scheduler, 40, [[times[0]], [times[1]]])
    assert spent[1] > 2 * spent[0] > 0


def test_no_task_starves() -> None:
    scheduler = TaskScheduler([TaskInfo(weight=5), TaskInfo(weight=1)])
    assert spend(scheduler, 200, [[1.0], [1.0]])[1] > 10


def test_an_improving_task_is_preferred_to_a_stuck_one() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()], options=SchedulerOptions(alpha=0.8))
    for step in range(6):
        scheduler.told(0, 1.0, 16)
        scheduler.told(1, 2.0 - 0.2 * step, 16)
    assert scheduler.next_task() == 1


def test_a_task_that_lags_its_group_is_preferred() -> None:
    def scheduler(group: str | None) -> TaskScheduler:
        made = TaskScheduler([TaskInfo(flops=1e9, group=group), TaskInfo(flops=1e9, group=group)])
        for _ in range(8):
            made.told(0, 0.1, 16)
            made.told(1, 1.0, 16)
        return made

    assert scheduler("conv").expected_gain(1) > scheduler(None).expected_gain(1)
    assert scheduler("conv").expected_gain(0) == scheduler(None).expected_gain(0)


def test_a_task_without_a_valid_program_dies_and_stalls_nobody() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    assert spend(scheduler, 30, [[None], [1.0]]) == {0: 3, 1: 27}
    assert not scheduler.alive(0) and scheduler.objective == 2.0


def test_exhausted_and_empty_rounds_kill_a_task() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    scheduler.told(0, 1.0, 16, exhausted=True)
    scheduler.told(1, 1.0, 0)
    assert scheduler.next_task() is None


def test_all_tasks_invalid_ends() -> None:
    assert sum(spend(TaskScheduler([TaskInfo()] * 3), 100, [[None]] * 3).values()) == 9


def test_early_stops() -> None:
    options = SchedulerOptions(early_stop=20)
    assert sum(spend(TaskScheduler([TaskInfo()] * 2, options=options), 99, [[1.0]] * 2, trials=5).values()) == 2 + 4
    options = SchedulerOptions(task_early_stop=10)
    spent = spend(TaskScheduler([TaskInfo()] * 2, options=options), 99, [[1.0], [1.0, 0.9, 0.8, 0.7]], trials=5)
    assert spent == {0: 3, 1: 6}


def test_early_stop_waits_for_every_task() -> None:
    scheduler = TaskScheduler([TaskInfo()] * 3, options=SchedulerOptions(early_stop=1))
    assert spend(scheduler, 3, [[1.0]] * 3, trials=5) == {0: 1, 1: 1, 2: 1}


def test_mistakes_are_sentences() -> None:
    with pytest.raises(ValueError, match="no task"):
        TaskScheduler([])
    with pytest.raises(ValueError, match="gradient, round-robin"):
        TaskScheduler([TaskInfo()], options=SchedulerOptions(strategy="greedy"))


@given(st.lists(st.lists(st.one_of(st.none(), st.floats(), st.floats(1e-7, 10.0)), min_size=1, max_size=6),
                min_size=1, max_size=5))
def test_gains_are_finite_and_the_same_history_gives_the_same_choice(times: list[list[float | None]]) -> None:
    def choices() -> list[int | None]:
        scheduler = TaskScheduler([TaskInfo(flops=1e6, group="all")] * len(times))
        named: list[int | None] = []
        for step in range(25):
            named.append(index := scheduler.next_task())
            if index is None:
                break
            scheduler.told(index, times[index][step % len(times[index])], 4)
            assert all(0 <= scheduler.expected_gain(task) < math.inf for task in range(len(times)))
        return named

    assert choices() == choices()
