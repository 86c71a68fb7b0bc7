"""The canaries of a station by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.farm.health import Costs
from ansor.farm.shifts import KEPT
from ansor.farm.watches import NONE, WATCHES_KEPT, Watches
from ansor.measure.device import Job
from tests.pretended_device import job


@pytest.fixture
def canary(tmp_path: Path) -> Job:
    return job(tmp_path, "1")


def test_each_canary_has_costs_jobs_and_a_shift_of_its_own(canary: Job) -> None:
    watches = Watches()
    assert watches.name == NONE and watches.open_shift() == watches.open_shift() == 1
    watches.note_job()
    assert watches.use(("a", "1"), canary, Costs()) == Costs()
    assert watches.open_shift() == 2 and watches.current.since == 0
    watches.note_job()
    assert watches.use(("b", "1"), canary, Costs((1.0,))) == Costs()
    assert watches.open_shift() == 3
    assert watches.use(("a", "1"), canary, Costs((2.0,))) == Costs((1.0,))
    assert watches.open_shift() == 2 and watches.current.since == 1
    watches.note_canary()
    watches.end_shift(counts=True)
    assert watches.judged == {2: True} and watches.current.since == 0 and watches.open_shift() == 4


def test_where_the_device_is_suspended_no_open_shift_counts(canary: Job) -> None:
    watches = Watches()
    for name in ("a", "b"):
        watches.use((name, "1"), canary, Costs())
        watches.open_shift()
    watches.drop_shifts()
    assert watches.judged == {1: False, 2: False} and watches.open_shift() == 3


def test_only_so_many_are_kept_and_results_of_the_others_do_not_count(canary: Job) -> None:
    watches = Watches()
    shifts = []
    for number in range(3 * WATCHES_KEPT):
        watches.use(("a", str(number)), canary, Costs((1.0,)))
        shifts.append(watches.open_shift())
    assert len(watches._watches) == WATCHES_KEPT
    assert set(watches.judged) == set(shifts[:-WATCHES_KEPT]) and not any(watches.judged.values())
    assert watches.use(("a", "0"), canary, Costs()) == Costs()  # as one that was never used


def test_only_the_last_shifts_are_kept(canary: Job) -> None:
    watches = Watches()
    watches.use(("a", "1"), canary, Costs())
    for _ in range(2 * KEPT):
        last = watches.open_shift()
        watches.end_shift(counts=True)
    assert len(watches.judged) == KEPT and last in watches.judged
