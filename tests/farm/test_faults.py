"""Workers that are killed and cut off while jobs run: `benchmarks/farm.py faults` does it with more jobs."""

from __future__ import annotations

from pathlib import Path

from ansor.measure.failure import Failure
from tests.farm_faults import KEYS, Ran, run_jobs, what_is_wrong


def test_each_job_is_measured_once_or_reported_and_the_same_as_undisturbed(tmp_path: Path) -> None:
    found = {faults: run_jobs(tmp_path / f"faults-{faults}", 200, 10, faults=faults) for faults in (False, True)}
    assert {key: what_is_wrong(found[True][key], found[False][key]) for key in KEYS} == {key: [] for key in KEYS}
    assert all(found[True][key].disturbed for key in KEYS)


def test_what_goes_wrong_is_seen(tmp_path: Path) -> None:
    usual = run_jobs(tmp_path / "farm", 8, 1, faults=False)["left"]
    rest = usual.outcomes[1:]
    assert what_is_wrong(usual, usual) == []
    lost, wrong = Failure("link_lost", "why"), Failure("crash", "why")
    one = frozenset({"job 1"})
    assert what_is_wrong(Ran([lost, *rest], usual.begun, one), usual) == []
    assert what_is_wrong(Ran([lost, lost, *rest[1:]], usual.begun, one), usual) == [
        "['job 2'] were reported although no worker was lost while they were in flight"
    ]
    assert what_is_wrong(Ran([wrong, *rest], usual.begun, one), usual) == ["jobs were reported as ['crash']"]
    assert what_is_wrong(Ran(rest, usual.begun), usual)[0] == "4 jobs have 3 outcomes"
    assert what_is_wrong(Ran([rest[0], *rest], usual.begun), usual) == ["a job has another cost than undisturbed"]
    again = {**usual.begun, "job 2": 2}
    assert "['job 2'] began again" in what_is_wrong(Ran(usual.outcomes, again), usual)[0]
    assert what_is_wrong(Ran(usual.outcomes, again, frozenset({"job 2"})), usual) == []
    assert what_is_wrong(Ran(usual.outcomes, {"job 1": 1}), usual) == ["another set of jobs began on the devices than undisturbed"]
