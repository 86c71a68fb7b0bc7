"""What files hold instead of a workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.measure.nothing_recorded import nothing_for, target_texts
from ansor.measure.record import load
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"


def test_the_other_workloads_and_targets_of_all_files(tmp_path: Path) -> None:
    files = [recorded(tmp_path / f"{n}.jsonl", SearchTask(matmul, (n, n, n), ONE)) for n in (8, 16)]
    target = parse_target(ONE)
    assert target_texts(load(files[0]).records) == [str(target)]
    said = f"{files[0]}, {files[1]} has no valid record of it for target {target} on this machine; it holds "
    assert str(nothing_for("it", target, *files)).startswith(f"{said}matmul(8, 8, 8) and matmul(16, 16, 16); `ansor show {files[0]}` ")
    assert f"; it holds trials for --target '{target}'; `" in str(nothing_for("it", parse_target("cpu -threads=2"), *files))
