"""Record files when the power goes at any operation: at most the trial in flight is lost, and the next run goes on."""

import shutil
from pathlib import Path

import pytest

from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, foreign_header, load
from tests.power_loss import every_death

TRIALS = [
    Record(f"workload{k % 2}", "cpu -threads=1", (("SP", "C", "i"),), (k, 7), (1e-3 * (k + 1),) if k % 3 else (), None if k % 3 else Failure("crash", "x"))
    for k in range(6)
]


@pytest.mark.parametrize("there", [0, 2], ids=["a new file", "a file with trials"])
def test_at_most_the_trial_in_flight_is_lost(tmp_path: Path, there: int) -> None:
    folder, kept = tmp_path / "disk", tmp_path / "kept.jsonl"
    path = folder / "results" / "trials.jsonl"
    with RecordFile(kept, foreign_header("a test")) as file:
        for trial in TRIALS[:there]:
            file.append(trial)
    returned: list[Record] = []

    def begin() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        returned.clear()
        if there:
            path.parent.mkdir()
            shutil.copy(kept, path)

    def run() -> None:
        with RecordFile(path, foreign_header("a test")) as file:
            for trial in TRIALS[there:]:
                file.append(trial)
                returned.append(trial)

    deaths = 0
    folder.mkdir()
    for how in every_death(folder, run, begin):
        deaths += 1
        found = load(path).records if path.exists() else ()
        safe = there + len(returned)
        assert list(found) == TRIALS[: len(found)] and safe <= len(found) <= safe + 1, how
        with RecordFile(path, foreign_header("a test")) as file:  # the next run
            for trial in TRIALS[len(found) :]:
                file.append(trial)
        again = load(path)
        assert list(again.records) == TRIALS and sum(again.skipped.values()) <= 1, how
    assert deaths >= 60
