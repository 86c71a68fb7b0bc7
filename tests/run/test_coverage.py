"""Shares of a network's time: measured where they can be, estimated elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor import te
from ansor.measure.record import RecordFile, foreign_header, load
from ansor.run.coverage import PICKED, PLAIN, SHAPE, TUNED, UnusedRecords, coverage
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"


@pytest.fixture
def task() -> SearchTask:
    return SearchTask(matmul, (32, 32, 32), ONE)


def test_what_was_not_measured_goes_at_the_rate_of_what_was(task: SearchTask, tmp_path: Path) -> None:
    """The same shape under two keys would take the same time; twice the uses, twice the share."""
    other = SearchTask(matmul, (32, 32, 64), ONE)
    file = recorded(tmp_path / "r.jsonl", task)
    once, twice = (coverage([(task, 1.0), (other, uses)], file) for uses in (1.0, 2.0))
    ratios = [found.share(PICKED) / found.share(TUNED) for found in (once, twice)]
    assert ratios[1] == pytest.approx(2 * ratios[0]) and once.share(TUNED) + once.share(PICKED) == pytest.approx(1.0)
    (picked,) = (one for one in once.tasks if one.program == PICKED)
    assert picked.near == (UnusedRecords(task.name, 3, SHAPE),) and picked.trials == 0 and picked.cost is None


def test_without_any_time_shares_are_those_of_the_estimate(task: SearchTask, tmp_path: Path) -> None:
    file = recorded(tmp_path / "r.jsonl", SearchTask(matmul, (8, 8, 8), ONE))
    small, large = coverage([(task, 1.0), (SearchTask(matmul, (64, 64, 64), ONE), 1.0)], file).tasks[::-1]
    assert small.name == task.name and 4.0 < large.share / small.share < 16.0


def test_one_task_of_two_groups_is_one(task: SearchTask, tmp_path: Path) -> None:
    (only,) = coverage([(task, 1.0), (SearchTask(matmul, (32, 32, 32), ONE), 3.0)], recorded(tmp_path / "r.jsonl", task)).tasks
    assert only.uses == 4.0 and only.share == 1.0 and only.program == TUNED and only.trials == 3


def test_trials_that_all_failed_tune_nothing(task: SearchTask, tmp_path: Path) -> None:
    failed = [one for one in load(recorded(tmp_path / "r.jsonl", task)).records if one.failure is not None]
    with RecordFile(tmp_path / "failed.jsonl", foreign_header("here")) as file:
        for one in failed:
            file.append(one)
    (only,) = coverage([(task, 1.0)], tmp_path / "failed.jsonl").tasks
    assert (only.program, only.trials, only.cost) == (PICKED, 1, None)


def test_records_of_another_compiler_are_near(task: SearchTask, tmp_path: Path) -> None:
    with RecordFile(tmp_path / "other.jsonl", foreign_header("there")) as file:
        for one in load(recorded(tmp_path / "r.jsonl", task)).records:
            file.append(one._replace(target=f"{one.target.rpartition(', ')[0]}, gcc 9.0)"))
    (only,) = coverage([(task, 1.0)], tmp_path / "other.jsonl").tasks
    (near,) = only.near
    assert near.trials == 3 and "gcc 9.0, here zig cc" in near.why and only.program == PICKED


def test_what_has_no_reduction_is_told_apart(tmp_path: Path, task: SearchTask) -> None:
    plain = SearchTask(tensors=_copy(), target=ONE, name="copy")
    found = coverage([(task, 1.0), (plain, 1.0)], recorded(tmp_path / "r.jsonl", task))
    assert {one.name: one.program for one in found.tasks} == {task.name: TUNED, "copy": PLAIN} and found.count(PLAIN) == 1


def _copy() -> list[Tensor]:
    a = te.placeholder((16,), name="a")
    return [a, te.compute((16,), lambda i: a[i] + 1.0, name="b")]
