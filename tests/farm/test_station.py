"""One device, and programs for several targets in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.farm import station
from ansor.farm.codec import pack_job
from ansor.farm.health import WELL_AGAIN
from ansor.measure.failure import Failure
from tests.pretended_device import PretendedDevice, job

A, B = "cpu -threads=1", "cpu -threads=2"


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(station, "open_device", lambda text, target: PretendedDevice(text))
    (tmp_path / "files").mkdir()


def packed_job(folder: Path) -> tuple[str, dict[str, bytes]]:
    packed = pack_job(job(folder, "1"))
    return packed.text, {digest: path.read_bytes() for digest, path in packed.files.items()}


def test_a_throttled_device_is_found_by_targets_in_turn(tmp_path: Path) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files", lambda: None)
    text, files = packed_job(tmp_path)

    def ran(target: str) -> bool:
        return "outcome" in one.run(target, text, files, {"text": text, "every": 2})

    assert all(ran(target) for target in (A, B, A, B))
    (tmp_path / "d.throttled").touch()
    assert not all([ran(target) for target in (B, A, B, A)])
    assert "2.00 times as long" in one.health.quarantined
    one.describe(A)
    one.describe(B)
    for _ in range(WELL_AGAIN):
        one.probe()
    assert one.health.quarantined
    (tmp_path / "d.throttled").unlink()
    for _ in range(WELL_AGAIN):
        one.describe(A)
        one.probe()
    assert not one.health.quarantined


def test_results_count_by_the_canary_that_comes_after_them(tmp_path: Path) -> None:
    changes: list[str] = []
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files", lambda: changes.append("changed"))
    text, files = packed_job(tmp_path)
    said = [one.run(A, text, files, {"text": text, "every": 3}) for _ in range(5)]
    first, last = said[0]["shift"], said[4]["shift"]
    assert [each["shift"] for each in said] == [first] * 3 + [last] * 2
    assert first not in said[1]["judged"] and said[2]["judged"][first] and last not in said[4]["judged"]
    (tmp_path / "d.throttled").touch()
    refused = one.judge(A, text, files, 0.0)
    assert "2.00 times as long as usual" in refused["refused"] and refused["judged"][first] and not refused["judged"][last] and changes == ["changed"]


def test_a_device_that_was_slow_from_its_start_is_judged_by_others_and_comes_back_as_fast_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "d.throttled").touch()
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files", lambda: None)
    text, files = packed_job(tmp_path)
    usual = one.judge(A, text, files, 0.0)
    assert "refused" not in usual
    assert "2.00 times as long as on the others of its key" in one.judge(A, text, files, usual["canary"] / 2)["refused"]
    for _ in range(2 * WELL_AGAIN):
        one.probe()
    assert one.health.quarantined
    (tmp_path / "d.throttled").unlink()
    for _ in range(WELL_AGAIN):
        one.probe()
    assert not one.health.quarantined


def test_results_do_not_count_by_the_canary_of_another_target_or_of_another_program(tmp_path: Path) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    other = pack_job(job(tmp_path, "2"))
    more = {digest: path.read_bytes() for digest, path in other.files.items()}
    for _ in range(2):
        said = one.run(A, text, files, {"text": text, "every": 8})
    (tmp_path / "d.throttled").touch()
    for _ in range(2):
        assert said["shift"] not in one.judge(B, text, files, 0.0)["judged"]
        assert said["shift"] not in one.judge(A, other.text, more, 0.0)["judged"]
    refused = one.judge(A, text, files, 0.0)
    assert "2.00 times" in refused["refused"] and not refused["judged"][said["shift"]]


def test_a_device_is_well_again_also_if_its_canary_is_no_longer_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    one.judge(A, text, files, 0.0)
    (tmp_path / "d.throttled").touch()
    assert "refused" in one.judge(A, text, files, 0.0)
    monkeypatch.setattr(station, "FILES_KEPT", 0)
    one.run(A, text, {}, {})
    assert not any((tmp_path / "files").iterdir())
    one.probe()
    assert not one.health.quarantined


def test_a_program_that_takes_too_long_on_a_throttled_device_runs_on_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    one.judge(A, text, files, 0.0)
    monkeypatch.setattr(one, "_answer", lambda *_: Failure("timeout", "too long"))
    assert one.run(A, text, files, {"text": text, "every": 1})["outcome"] == {"failure": ["timeout", "too long"]}
    (tmp_path / "d.throttled").touch()
    assert "2.00 times" in one.run(A, text, files, {"text": text, "every": 1})["refused"]


def test_a_device_that_never_answers_loses_its_job_and_is_suspended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station, "PATIENCE_SECONDS", 0.2)
    one = station.Station(f"pretended:d,{tmp_path},0,hangs", "key", tmp_path / "files", lambda: None)
    text, files = packed_job(tmp_path)
    kind, why = one.run(A, text, files, {})["outcome"]["failure"]
    assert kind == "link_lost" and "did not answer within 0.2 s" in why
    assert one.run(A, text, files, {})["refused"] == why and one.status()["failures"] == 1
