from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from ansor.measure.failure import Failure
from ansor.measure.measurer import Measurement
from ansor.progress import ProgressView, progress_parts, task_table
from ansor.task import SearchTask
from ansor.tuning import Best, Progress, TaskState
from ansor.zoo.operators import conv2d, matmul

TASK = SearchTask(matmul, (64, 64, 64), "cpu -threads=1")


def progress(trials: int, seconds: float, flop: float, tasks: int = 1, waiting: int = 0, failures: dict[str, int] | None = None) -> Progress:
    return Progress(TASK, trials, trials, 64, 4.0, tasks, waiting, seconds, flop, failures or {}, Measurement(seconds=(1e-3,)), pace=0.5)


def test_an_operator_shows_rate_share_speed_and_failures() -> None:
    assert progress_parts(progress(8, 1e-3, 5e7, failures={"timeout": 1, "compile": 2}), 100.0) == [
        "8/64 trials, 2.0 trials/s, 28 s left", "best 1 ms, 50.0 GFLOP/s (50 % of peak)", "matmul(64, 64, 64)", "failed: compile 2, timeout 1",
    ]  # fmt: skip


def test_a_budget_of_time_shows_what_is_left_of_it_and_what_to_expect() -> None:
    timed = replace(progress(8, 1e-3, 5e7), budget=None, left=130.0, gain=0.0234)
    assert progress_parts(timed, None)[:2] == ["8 trials, 2.0 trials/s, 2 min 10 s left", "best 1 ms, 50.0 GFLOP/s, 2.3 % to gain"]


def test_the_nearer_end_of_two_budgets_is_shown() -> None:
    both = [replace(progress(8, 1e-3, 5e7), left=left) for left in (10.0, 100.0)]
    assert [progress_parts(one, None)[0] for one in both] == ["8/64 trials, 2.0 trials/s, 10 s left", "8/64 trials, 2.0 trials/s, 28 s left"]


def test_a_network_shows_the_sum() -> None:
    assert progress_parts(progress(8, 5e-3, 5e7, tasks=3, waiting=1), None)[1] == "sum of kernels 5 ms, 10.0 GFLOP/s, 1 task to come"


def test_nothing_valid_yet() -> None:
    assert [part.split()[0] for part in progress_parts(progress(1, 0.0, 0.0, waiting=1, failures={"crash": 1}), 100.0)] == ["1/64", "matmul(64,", "failed:"]


def test_plain_lines_are_few_and_the_last_one_is_there() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200)) as view:
        for trials in range(1, 65):
            view.update(progress(trials, 1e-3, 1e6))
        view.say("a remark")
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["1/64", "64/64", "a"]


def test_the_last_line_of_a_budget_of_time_is_there() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200)) as view:
        for left in (2.0, 1.0, 0.0):
            view.update(replace(progress(int(9 - left), 1e-3, 1e6), budget=None, left=left))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["7", "9"]


def test_a_terminal_has_one_live_line_that_goes_away() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200, force_terminal=True)) as view:
        view.update(progress(3, 1e-3, 1e6))
        view.say("a remark")
    assert view.live is None and "a remark" in out.getvalue()


def test_the_table_of_tasks() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(task_table([TaskState(TASK, 3.0)], 100.0))
    assert out.getvalue().splitlines()[1].split() == ["matmul(64,", "64,", "64)", "3", "-", "-", "-", "0"]


def test_the_table_says_when_an_algorithm_needs_fewer_operations() -> None:
    task = SearchTask(conv2d, (1, 28, 28, 32, 32), "cpu -threads=1")
    spaces = {space.algorithm: space for space in task.spaces}
    said = {}
    for algorithm in ("", next(name for name in spaces if name.startswith("winograd"))):
        out = io.StringIO()
        best = Best(spaces[algorithm].sketch, (), 1e-5)
        Console(file=out, width=200).print(task_table([TaskState(task, 1.0, best=best)], 1.0))
        said[bool(algorithm)] = "operations are counted as declared" in out.getvalue()
    assert said == {False: False, True: True}


def test_failures_have_a_kind() -> None:
    assert str(Failure("crash", "signal 11")) == "crash: signal 11"
