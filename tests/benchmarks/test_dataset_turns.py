"""Recorded programs get new times, and everything else of the records stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_turns import retimed

from ansor.dataset.collect import collect, records_of, search_task
from ansor.dataset.operators import DatasetTask
from ansor.measure.record import load
from ansor.targets.base import parse_target

SMALL = DatasetTask("softmax", "small", (("rows", 8), ("columns", 8)), "softmax-rows8-columns8")


@pytest.mark.compiler
def test_good_programs_are_timed_again(tmp_path: Path) -> None:
    target = parse_target("cpu -threads=1")
    collect([SMALL], target, tmp_path, trials=6)
    path = records_of(tmp_path, SMALL)
    before = load(path)
    said = retimed(search_task(SMALL, target), path, target, 6)
    after = load(path)
    assert "programs; the best of before has" in said
    assert after.headers == before.headers and len(after.records) == len(before.records) == 6
    for old, new in zip(before.records, after.records, strict=True):
        assert new._replace(costs=old.costs) == old
        assert new.costs == old.costs or len(new.costs) == 5
    assert any(new.costs != old.costs for old, new in zip(before.records, after.records, strict=True))
