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


def test_an_improving_task_is_preferred_to_one_that_is_long_stuck() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    for step in range(6):
        scheduler.told(0, 1.0, 16)
        scheduler.told(1, 1.5 - 0.1 * step, 16)
    assert scheduler.next_task() == 1


def test_trials_without_a_better_program_may_be_told_exactly() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    scheduler.told(0, 1.0, 100, since=90)
    scheduler.told(1, 1.0, 100, since=5)
    assert scheduler.next_task() == 1


def test_where_time_is_told_the_cheap_task_is_preferred() -> None:
    def scheduler(*seconds: float | None) -> TaskScheduler:
        made = TaskScheduler([TaskInfo(), TaskInfo()])
        for index, one in enumerate(seconds):
            made.told(index, 1.0, 16, seconds=one)
        return made

    assert [scheduler(None, None).next_task(), scheduler(8.0, 4.0).next_task()] == [0, 1]
    assert scheduler(8.0, None).expected_gain(1) == scheduler(8.0, 8.0).expected_gain(1), "like the others until it is known"


def test_everyone_has_a_first_round_before_anyone_has_a_third() -> None:
    scheduler = TaskScheduler([TaskInfo(weight=100), *[TaskInfo()] * 4])
    for _ in range(3):
        scheduler.told(0, 1.0, 8)
    assert spend(scheduler, 4, [[1.0]] * 5) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_a_task_without_a_valid_program_is_tried_at_growing_distances_dies_and_stalls_nobody() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    named = []
    for _ in range(100):
        index = scheduler.next_task()
        assert index is not None
        named.append(index)
        scheduler.told(index, (None, 1.0)[index], 1)
    tried = [step for step, index in enumerate(named) if index == 0]
    assert [later - before for before, later in zip(tried, tried[1:], strict=False)] == [3, 5, 9, 17, 33]
    assert not scheduler.alive(0) and scheduler.objective == 2.0


def test_a_first_valid_program_ends_the_waiting() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    assert spend(scheduler, 40, [[None, 1.0], [1.0]])[0] >= 15


def test_exhausted_and_empty_rounds_kill_a_task() -> None:
    scheduler = TaskScheduler([TaskInfo(), TaskInfo()])
    scheduler.told(0, 1.0, 16, exhausted=True)
    scheduler.told(1, 1.0, 0)
    assert scheduler.next_task() is None


def test_all_tasks_invalid_ends() -> None:
    assert sum(spend(TaskScheduler([TaskInfo()] * 3), 100, [[None]] * 3).values()) == 3 * SchedulerOptions().valid_attempts


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
    with pytest.raises(ValueError, match="expected-gain, round-robin"):
        TaskScheduler([TaskInfo()], options=SchedulerOptions(strategy="greedy"))


@given(st.lists(st.lists(st.one_of(st.none(), st.floats(), st.floats(1e-7, 10.0)), min_size=1, max_size=6),
                min_size=1, max_size=5))
def test_gains_are_finite_and_the_same_history_gives_the_same_choice(times: list[list[float | None]]) -> None:
    def choices() -> list[int | None]:
        scheduler = TaskScheduler([TaskInfo()] * len(times))
        named: list[int | None] = []
        for step in range(25):
            named.append(index := scheduler.next_task())
            if index is None:
                break
            scheduler.told(index, times[index][step % len(times[index])], 4)
            assert all(0 <= scheduler.expected_gain(task) < math.inf for task in range(len(times)))
        return named

    assert choices() == choices()
