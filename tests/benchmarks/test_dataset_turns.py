"""Recorded programs get new times, and everything else of the records stays."""

from __future__ import annotations

from pathlib import Path

import dataset_turns
import pytest
from dataset_turns import SLOWEST, retimed

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


@pytest.mark.compiler
def test_each_good_program_gets_its_own_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target("cpu -threads=1")
    collect([SMALL], target, tmp_path, trials=6)
    path = records_of(tmp_path, SMALL)
    before = load(path).records
    best = min(record.cost for record in before)
    good = [record for record in before if record.cost <= SLOWEST * best]
    monkeypatch.setattr(dataset_turns, "in_turns", lambda task, outcomes, target, turns: [(outcome.cost + 1.0,) * 5 for outcome in outcomes])
    said = retimed(search_task(SMALL, target), path, target, 6)
    assert [record.costs for record in load(path).records] == [(old.cost + 1.0,) * 5 if old in good else old.costs for old in before]
    assert said == f"{len(good)} programs; the best of before has 1.00 of the speed"
