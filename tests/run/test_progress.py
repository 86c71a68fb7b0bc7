from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ansor import te
from ansor.codegen.source import CSource
from ansor.errors import ScheduleError
from ansor.ir.loops import Loops
from ansor.measure.failure import Failure
from ansor.measure.measurer import Measurement
from ansor.run.progress import ProgressPanel, ProgressView, task_table
from ansor.run.progress_text import progress_parts, share_done
from ansor.run.states import Best, BudgetUse, Progress, RunResults, TaskState, WholeRun
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target, find_kind, register_kind
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import conv2d, matmul

TASK = SearchTask(matmul, (64, 64, 64), "cpu -threads=1")


def progress(trials: int, seconds: float, flop: float, tasks: int = 1, waiting: int = 0, failures: dict[str, int] | None = None) -> Progress:
    spent, reached = BudgetUse(trials, trials, 64, 4.0, pace=0.5), RunResults(tasks, waiting, seconds, flop)
    return Progress(TASK, Measurement(costs=(1e-3,)), spent, reached, failures or {})


def later(before: Progress, **spent: Any) -> Progress:
    """The same with more of the budget used."""
    return replace(before, spent=replace(before.spent, **spent))


def test_an_operator_shows_rate_share_speed_and_failures() -> None:
    assert progress_parts(progress(8, 1e-3, 5e7, failures={"timeout": 1, "compile": 2}), 100.0) == [
        "8/64 trials, 2.0 trials/s, 28 s left", "best 1 ms, 50.0 GFLOP/s (50 % of peak)", "matmul(64, 64, 64)", "failed: compile 2, timeout 1",
    ]  # fmt: skip


def test_a_budget_of_time_shows_what_is_left_of_it_and_what_to_expect() -> None:
    timed = replace(later(progress(8, 1e-3, 5e7), budget=None, left=130.0), gain=0.0234)
    assert progress_parts(timed, None)[:2] == ["8 trials, 2.0 trials/s, 2 min 10 s left", "best 1 ms, 50.0 GFLOP/s"]
    assert progress_parts(timed, None)[3] == "the remaining trials are expected to make it 2.3 % faster"


def test_the_nearer_end_of_two_budgets_is_shown() -> None:
    both = [later(progress(8, 1e-3, 5e7), left=left) for left in (10.0, 100.0)]
    assert [progress_parts(one, None)[0] for one in both] == ["8/64 trials, 2.0 trials/s, 10 s left", "8/64 trials, 2.0 trials/s, 28 s left"]


def test_a_network_shows_the_sum() -> None:
    assert progress_parts(progress(8, 5e-3, 5e7, tasks=3, waiting=1), None)[1:] == [
        "sum of 2 kernels (each alone, warm caches) 5 ms, 10.0 GFLOP/s", "measured programs for 2 of 3 tuned tasks; now matmul(64, 64, 64)",
    ]  # fmt: skip


def test_devices_are_lines_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    panel = ProgressPanel()
    panel.update(replace(progress(8, 1e-3, 5e7), devices=("board1: busy, 3 jobs done", "board2: left out, 1 job done")))
    console.print(panel)
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.strip() for line in shown[-2:]] == ["board1: busy, 3 jobs done", "board2: left out, 1 job done"]


def of_two(trials: int = 24, devices: bool = False) -> Progress:
    """A run of two targets, after 8 trials of 64 of each; its figures are those of both."""
    first = later(progress(8, 5e-3, 5e7, tasks=3, waiting=1), pace=0.25)
    other = SearchTask(matmul, (64, 64, 64), "micro -board=mps2-an386")
    second = replace(progress(8, 1e4, 5e5, failures={"trap": 1}), task=other, reached=RunResults(1, 0, 1e4, 5e5, unit=INSTRUCTIONS))
    if devices:
        first, second = replace(first, devices=("a: busy, 3 jobs done",)), replace(second, devices=("b: free, 1 job done",))
    return replace(first, whole=WholeRun(BudgetUse(trials, trials - 4, 128, 4.0), (first, second)))


def test_several_targets_have_a_line_each_and_the_last_one_to_end_counts() -> None:
    assert progress_parts(of_two(), 100.0) == [
        "24/128 trials, 5.0 trials/s, 28 s left",
        f"{TASK.target}: 8/64 trials; sum of 2 kernels (each alone, warm caches) 5 ms, 10.0 GFLOP/s; "
        "measured programs for 2 of 3 tuned tasks; now matmul(64, 64, 64)",
        "micro -board=mps2-an386: 8/64 trials; best 10.0 k instructions, 50 operations per instruction; matmul(64, 64, 64); failed: trap 1",
    ]  # fmt: skip
    assert share_done(of_two()) == 24 / 128


def test_devices_of_several_targets_are_lines_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=300)
    panel = ProgressPanel()
    panel.update(of_two(devices=True))
    console.print(panel)
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.strip() for line in shown[-2:]] == ["a: busy, 3 jobs done", "b: free, 1 job done"]


def test_the_last_plain_line_of_several_targets_is_there() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out, width=400)) as view:
        for trials in (64, 127, 128):
            view.update(of_two(trials))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["64/128", "128/128"]


def test_the_table_names_targets_where_there_are_several() -> None:
    others = [TaskState(SearchTask(matmul, (64, 64, 64), target)) for target in ("cpu -threads=1", "micro -board=mps2-an386")]
    console = Console(file=io.StringIO(), width=200)
    console.print(task_table(others, None))
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert shown[0].split()[:2] == ["task", "target"] and "micro -board=mps2-an386" in shown[2]


@pytest.mark.parametrize(("target", "headings"), [
    ("cpu -threads=1", ["task", "uses", "latency", "GFLOP/s", "% of peak", "trials"]), ("micro -board=mps2-an386", ["task", "uses", "cost", "trials"]),
])  # fmt: skip
def test_the_table_has_rates_where_costs_are_times(target: str, headings: list[str]) -> None:
    task = SearchTask(matmul, (64, 64, 64), target)
    state = TaskState(task, best=Best(Sketch(task.dag), (), 1e4, unit=task.target.unit))
    table = task_table([state], 100.0)
    assert [column.header for column in table.columns] == headings and table.row_count == 1


def test_a_share_above_the_peak_is_explained_where_it_stands() -> None:
    winograd = replace(progress(8, 1e-3, 5e7), reached=RunResults(1, 0, 1e-3, 5e7, fewer_operations=True))
    assert progress_parts(winograd, 25.0)[1] == "best 1 ms, 50.0 GFLOP/s (200 % of peak, operations as declared)"
    assert progress_parts(progress(8, 1e-3, 5e7), 25.0)[1].endswith("(200 % of peak, which was measured while the machine was busy)")
    assert progress_parts(winograd, None)[1] == "best 1 ms, 50.0 GFLOP/s (operations as declared)"


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
            view.update(later(progress(int(9 - left), 1e-3, 1e6), budget=None, left=left))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["7", "9"]


def terminal(width: int = 80) -> tuple[io.StringIO, Console]:
    out = io.StringIO()
    return out, Console(file=out, width=width, height=24, force_terminal=True, force_jupyter=False)


def test_a_terminal_has_live_lines_that_go_away() -> None:
    out, console = terminal()
    with ProgressView(console) as view:
        view.update(progress(3, 1e-3, 1e6))
        view.say("a remark")
    assert view.live is None and "a remark" in out.getvalue()


@pytest.mark.parametrize("width", [80, 60, 120])
def test_lines_fit_and_nothing_is_cut(width: int) -> None:
    out, console = terminal(width)
    panel = ProgressPanel()
    name = "conv2d_transpose_with_a_long_name_512x512_3x3_bias_add_relu_and_more_of_it"
    many = later(progress(398, 7.65e-3, 5e9, tasks=32, waiting=12, failures={"timeout": 1, "compile": 2}), budget=400)
    long = replace(many, task=SearchTask(matmul, name=name))
    for number in range(2):
        panel.update(replace(later(long, trials=399 + number), gain=0.001))
    panel.now("building 32 kernels")
    console.print(panel)
    lines = out.getvalue().splitlines()
    assert max(cell_len(Text.from_ansi(line).plain) for line in lines) <= width and "\u2026" not in out.getvalue()
    text = " ".join(Text.from_ansi(line).plain.strip() for line in lines)
    wanted = ("400/400 trials", "s left", "measured programs for 20 of 32 tuned tasks", "each alone, warm caches", "failed: compile 2, timeout 1")
    for part in (*wanted, "building 32 kernels"):
        assert part in text
    assert name in text.replace(" ", "").replace("|", "") or name in text


def test_what_goes_on_before_the_first_trial_is_said() -> None:
    out, console = terminal()
    panel = ProgressPanel()
    panel.now("reading the model")
    console.print(panel)
    assert "reading the model" in out.getvalue()


def test_the_bar_shows_the_share_of_trials_or_of_time() -> None:
    assert share_done(progress(16, 1e-3, 1e6)) == 0.25
    assert share_done(later(progress(16, 1e-3, 1e6), left=4.0)) == 0.5
    assert share_done(later(progress(16, 1e-3, 1e6), budget=None, left=12.0)) == 0.25
    assert share_done(later(progress(0, 1e-3, 1e6), budget=None)) == 0.0


def _table(*states: TaskState, peak: float | None = 100.0) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=80).print(task_table(states, peak))
    return out.getvalue().splitlines()


def test_the_table_has_names_as_they_are() -> None:
    named = SearchTask(matmul, (64, 64, 64), "cpu -threads=1", name="heads[a][/b]")
    assert _table(TaskState(named, 1.0))[1].split()[0] == "heads[a][/b]"


def test_the_table_says_what_runs_where_nothing_was_measured() -> None:
    lines = _table(TaskState(TASK, 3.0))
    assert lines[1].split() == ["matmul(64,", "64,", "64)", "3", "untuned", "0"]
    assert " ".join(lines[2:]).split() == ["untuned:", "no", "trials;", "they", "use", "the", "program", "that", "the", "model", "picks"]
    lines = _table(TaskState(TASK, 3.0, trials=5))
    assert "failed" in lines[1] and "they use the plain loops of the declaration" in " ".join(" ".join(lines[2:]).split())


def test_the_table_says_when_not_even_the_plain_loops_run() -> None:
    def refuse(target: Target, loops: Loops, entry: str) -> CSource:
        raise ScheduleError("this machine only adds")

    kind = find_kind("cpu")
    mute = replace(kind, name="adder", default=lambda mcpu: replace(TASK.target, kind="adder"), codegen=replace(kind.codegen, emit=refuse))
    register_kind(mute)
    lines = _table(TaskState(SearchTask(matmul, (8, 8, 8), "adder"), 3.0, trials=5))
    assert " ".join(" ".join(lines[2:]).split()).endswith("no valid program; nothing runs: the target cannot run the plain loops of the declaration either")


def test_usual_names_fit_in_80_columns() -> None:
    task = SearchTask(matmul, (8, 8, 8), name="conv2d_3x3_16_32_15x15_s2_bias_relu")
    lines = _table(TaskState(task), TaskState(task, best=Best(task.spaces[0].sketch, (), 1.319e-5), trials=123))
    assert len([line for line in lines if line.startswith(task.name)]) == 2


def test_long_names_are_whole() -> None:
    name = "conv2d_" + "x" * 70
    task = SearchTask(matmul, (8, 8, 8), name=name)
    lines = _table(TaskState(task, best=Best(task.spaces[0].sketch, (), 1e-5)))
    assert "".join(line.split()[0] for line in lines[1:]) == name and max(map(len, lines)) <= 80


def test_the_table_marks_where_an_algorithm_needs_fewer_operations() -> None:
    task = SearchTask(conv2d, (1, 28, 28, 32, 32), "cpu -threads=1")
    spaces = {space.algorithm: space for space in task.spaces}
    winograd = next(name for name in spaces if name.startswith("winograd"))
    direct, fewer = (TaskState(task, 1.0, best=Best(spaces[name].sketch, (), 1e-5)) for name in ("", winograd))
    lines = _table(direct, fewer, peak=2000.0)
    assert "*" not in lines[1] and lines[2].count("*") == 2 and lines[3].startswith("* operations as declared")
    assert not any("operations as declared" in line for line in _table(direct))


def test_the_table_says_of_the_peak_what_the_live_line_says() -> None:
    task = SearchTask(matmul, (64, 64, 64), "cpu -threads=1")
    best = Best(task.spaces[0].sketch, (), task.flop / 50e9)  # 50 GFLOP/s
    lines = _table(TaskState(task, 1.0, best=best), peak=25.0)
    assert lines[1].count("**") == 2 and " ".join(" ".join(lines[2:]).split()) == "** above the peak, which was measured while the machine was busy"
    assert progress_parts(progress(8, 1e-3, 5e7), 25.0)[1].endswith("(200 % of peak, which was measured while the machine was busy)")
    assert "*" not in "".join(_table(TaskState(task, 1.0, best=best), peak=48.0)), "a little above is noise"


def test_failures_have_a_kind() -> None:
    assert str(Failure("crash", "signal 11")) == "crash: signal 11"


def test_the_table_says_which_tasks_a_network_does_not_tune() -> None:
    x = te.placeholder((8, 8), name="x")
    plain = SearchTask(tensors=[x, te.compute((8, 8), lambda i, j: x[i, j] * 2.0, name="y")], target=TASK.target, name="twice")
    remark = " ".join(" ".join(_table(TaskState(TASK), TaskState(plain), TaskState(plain))[4:]).split())
    assert remark.startswith("untuned: no trials (2 tasks without a reduction, which tuning a network skips); they use the program")


def test_a_gain_of_nothing_is_not_shown() -> None:
    assert not any("expected to" in part for part in progress_parts(replace(progress(64, 1e-3, 1e6), gain=0.0004), None))
    assert any("expected to make it 0.1 % faster" in part for part in progress_parts(replace(progress(64, 1e-3, 1e6), gain=0.0006), None))
