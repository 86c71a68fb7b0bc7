"""What of a record file counts, and which lines about the rest are warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.api import recorded_state, say_unused
from ansor.codegen.toolchain import find_compiler
from ansor.measure.record import Record, RecordFile, make_header
from ansor.record_target import record_target
from ansor.task import SearchTask
from ansor.te.workloads import matmul

ONE, TWO = (SearchTask(matmul, (16, 16, 16), f"cpu -threads={threads}") for threads in (1, 2))


def recorded(path: Path, task: SearchTask, target: str = "") -> None:
    space = task.spaces[0]
    with RecordFile(path, make_header(find_compiler())) as file:
        file.append(Record(task.workload_key, target or record_target(task.target), space.sketch.to_json(), (0,) * len(space.sizes), (1e-3,)))


def told(path: Path, task: SearchTask) -> tuple[list[str], list[str]]:
    """Lines, and those that must be seen."""
    lines, alarms = list[str](), list[str]()
    say_unused([recorded_state(task, path)], path, lines.append, alarms.append)
    return lines, alarms


def test_records_for_other_threads_are_no_alarm(tmp_path: Path) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    recorded(tmp_path / "r.jsonl", TWO)
    for task, other in ((ONE, TWO), (TWO, ONE)):
        (line,), alarms = told(tmp_path / "r.jsonl", task)
        assert f"1 record left out: made for another target than {record_target(task.target)}: {record_target(other.target)}" in line and not alarms


def test_it_must_be_seen_where_nothing_counts(tmp_path: Path) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    lines, (alarm,) = told(tmp_path / "r.jsonl", TWO)
    assert not lines and "1 record left out: made for another target" in alarm


@pytest.mark.parametrize("machine", ["(another processor, zig cc 0.17)", "(zig cc 0.1)", "(logged: llvm)", ""])
def test_records_of_another_machine_are_one(tmp_path: Path, machine: str) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    recorded(tmp_path / "r.jsonl", ONE, f"{ONE.target} {machine}".strip())
    lines, (alarm,) = told(tmp_path / "r.jsonl", ONE)
    assert not lines and "1 record left out: made on another processor or by another compiler than" in alarm
