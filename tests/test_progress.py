"""The line a person watches."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from ansor.measure.measurer import Measurement
from ansor.progress import ProgressView, format_left, progress_text, task_table
from ansor.task import SearchTask
from ansor.te import workloads
from ansor.tuning import Progress, TaskState

TASK = SearchTask(workloads.matmul, (64, 64, 64), "cpu -threads=1")
PROGRESS = Progress(TASK, 40, 30, 128, 10.0, (2**20 / 1e9 / 200,), {"crash": 2, "compile": 1}, Measurement((1e-5,)))


def test_one_operator() -> None:
    assert progress_text(PROGRESS, [1.0], 125.0) == (
        "40/128 trials | matmul(64, 64, 64) | best 5.243 us, 100.0 GFLOP/s (80 % of peak) | 3.0 trials/s, 29 s left | failed: compile 1, crash 2"
    )


def test_a_network_sums_its_kernels_by_their_uses() -> None:
    text = progress_text(replace(PROGRESS, best=(1e-3, 2e-3, None), failures={}), [2.0, 1.0, 1.0], None)
    assert "sum of kernels 4 ms (1 tasks to come)" in text
    assert "failed" not in text


def test_before_anything_ran() -> None:
    assert progress_text(replace(PROGRESS, best=(None,), measured=0, failures={}), [1.0], None) == "40/128 trials | matmul(64, 64, 64)"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")])
def test_time_left(seconds: float, text: str) -> None:
    assert format_left(seconds) == text


def test_plain_lines_off_a_terminal_and_a_live_line_on_one() -> None:
    plain = StringIO()
    with ProgressView(Console(file=plain, width=200), [1.0]) as view:
        view.update(PROGRESS)
        view.update(replace(PROGRESS, trials=41))
        view.update(replace(PROGRESS, trials=128))
    assert [line[:10].strip() for line in plain.getvalue().splitlines()] == ["40/128 tri", "128/128 tr"]
    live = StringIO()
    with ProgressView(Console(file=live, force_terminal=True, width=200), [1.0]) as view:
        view.update(PROGRESS)
        view.say("a line of its own")
    assert "a line of its own" in live.getvalue()


def test_the_table_at_the_end() -> None:
    console = Console(file=StringIO(), width=120)
    console.print(task_table([TaskState(TASK, 2.0), TaskState(TASK, 1.0)], 100.0))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert text.splitlines()[0].split() == ["task", "uses", "latency", "GFLOP/s", "%", "of", "peak", "trials"]
    assert text.splitlines()[1].split()[-5:] == ["2", "-", "-", "-", "0"]
