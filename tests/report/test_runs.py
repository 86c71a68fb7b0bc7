"""Record files as runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.errors import RecordError
from ansor.report.runs import read_run
from ansor.report.values import Failures
from ansor.targets.unit import INSTRUCTIONS
from tests.report.trials import COSTS, NAME, TASK, trial, trials, write


def test_a_run_has_its_trials_in_order_and_its_failures_by_kind(tmp_path: Path) -> None:
    run = read_run([write(tmp_path / "a.jsonl", trials())])
    (task,) = run.tasks
    assert (task.workload, task.name, task.costs) == (TASK.workload_key, NAME, COSTS)
    assert task.failures == (Failures("compile", 2, "compile: what the tool said"), Failures("timeout", 1, "timeout: what the tool said"))
    assert task.best == 1e-6 and task.failed == (2, 5, 6)
    assert task.steps == ((1, 4e-6), (3, 2e-6), (7, 1e-6))
    assert "zig cc" in run.made[0] and not run.left_out


def test_several_files_are_one_run_and_a_file_counts_once(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.jsonl", trials()), write(tmp_path / "b.jsonl", [trial(5e-7)])
    run = read_run([first, second, first])
    assert run.files == (str(first), str(second)) and [len(task.costs) for task in run.tasks] == [8] and run.tasks[0].best == 5e-7


def test_incomparable_costs_are_different_tasks(tmp_path: Path) -> None:
    counted = trial(1000.0)._replace(unit=INSTRUCTIONS, device="qemu-aarch64")
    run = read_run([write(tmp_path / "a.jsonl", [trial(1e-6), counted])])
    assert [where.unit.name for where in run.places] == ["seconds", "instructions"] and [task.best for task in run.tasks] == [1e-6, 1000.0]
    assert run.find(TASK.workload_key, run.places[1]) == run.tasks[1] and run.find("other", run.places[1]) is None


def test_files_without_trials_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="asked to report on .*none.jsonl, which is not a file; name a record file"):
        read_run([tmp_path / "none.jsonl"])
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(RecordError, match="asked to report on .*empty.jsonl, which holds no trials; name a record file"):
        read_run([tmp_path / "empty.jsonl"])
