"""One device, and programs for several targets in turn."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansor.errors import CacheError, DeviceError, ToolchainError
from ansor.farm import station
from ansor.farm.codec import pack_job
from ansor.farm.health import MOST_LOST, WELL_AGAIN
from ansor.farm.watches import WATCHES_KEPT
from ansor.measure.failure import Failure
from ansor.targets.base import Target
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
    assert "2.00 times as long" in one.health.suspended
    one.describe(A)
    one.describe(B)
    for _ in range(WELL_AGAIN):
        one.probe()
    assert one.health.suspended
    (tmp_path / "d.throttled").unlink()
    for _ in range(WELL_AGAIN):
        one.describe(A)
        one.probe()
    assert not one.health.suspended


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
    assert one.health.suspended
    (tmp_path / "d.throttled").unlink()
    for _ in range(WELL_AGAIN):
        one.probe()
    assert not one.health.suspended


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
    assert not one.health.suspended


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


def test_trouble_of_the_machine_is_not_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    monkeypatch.setattr(PretendedDevice, "run", lambda *_: Failure("machine", "no space left on device"))
    assert one.run(A, text, files, {})["refused"] == "its machine is in trouble: no space left on device"
    monkeypatch.undo()
    monkeypatch.setattr(station, "open_device", lambda text, target: PretendedDevice(text))
    one.probe()
    assert "outcome" in one.run(A, text, files, {})


def test_a_job_that_cannot_be_read_suspends_nothing(tmp_path: Path) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    damaged = json.dumps(json.loads(text) | {"timing": 7})
    with pytest.raises(DeviceError, match="received a job that cannot be read"):
        one.run(A, damaged, files, {})
    assert not one.health.suspended and "outcome" in one.run(A, text, files, {})


@pytest.mark.parametrize("error", [ToolchainError("no compiler"), CacheError("no folder"), OSError("no space left")])
def test_a_device_that_cannot_be_opened_is_suspended_until_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)

    def refuse(text: str, target: Target) -> PretendedDevice:
        raise error

    monkeypatch.setattr(station, "open_device", refuse)
    assert one.run(A, text, files, {})["refused"] == str(error)
    one.probe()
    assert one.health.suspended == str(error)
    monkeypatch.setattr(station, "open_device", lambda text, target: PretendedDevice(text))
    one.probe()
    assert "outcome" in one.run(A, text, files, {})


def test_a_device_that_lost_runs_is_opened_anew_before_it_gets_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[PretendedDevice] = []

    def open_it(text: str, target: Target) -> PretendedDevice:
        opened.append(PretendedDevice(text))
        return opened[-1]

    monkeypatch.setattr(station, "open_device", open_it)
    one = station.Station(f"pretended:d,{tmp_path},0", "key", tmp_path / "files")
    packed = pack_job(job(tmp_path, "lost"))
    files = {digest: path.read_bytes() for digest, path in packed.files.items()}
    for _ in range(MOST_LOST):
        assert one.run(A, packed.text, files, {})["outcome"]["failure"][0] == "link_lost"
    assert "lost 3 runs in a row" in one.health.suspended and len(opened) == 1
    one.probe()
    assert not one.health.suspended and len(opened) == 2


def test_what_a_device_keeps_of_its_tasks_is_let_go_of_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_it(text: str, target: Target) -> PretendedDevice:
        opened.append(text)
        return PretendedDevice(text)

    monkeypatch.setattr(station, "open_device", open_it)
    monkeypatch.setattr(station, "JOBS_OF_A_DEVICE", 4)
    one = station.Station(f"pretended:d,{tmp_path},0", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    assert all("outcome" in one.run(A, text, files, {}) for _ in range(10)) and len(opened) == 3


def test_a_canary_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    monkeypatch.setattr(PretendedDevice, "run", lambda *_: Failure("crash", "SIGBUS"))
    assert one.judge(A, text, files, 0.0)["refused"] == "its canary program failed: crash: SIGBUS"


def test_canaries_of_many_runs_take_no_more_room(tmp_path: Path) -> None:
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    for number in range(2 * WATCHES_KEPT):
        other = json.dumps(json.loads(text) | {"best": float(number + 1)})
        said = one.run(A, text, files, {"text": other, "every": 8})
        assert said["shift"] == number + 1
    assert len(one._watches._watches) == WATCHES_KEPT and said["judged"][1] is False


def test_a_process_that_left_too_many_runs_behind_ends_while_its_device_is_suspended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(station, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(station, "MOST_LEFT", 2)
    monkeypatch.setattr(os, "_exit", ended.append)
    one = station.Station(f"pretended:d,{tmp_path},0,hangs", "key", tmp_path / "files")
    text, files = packed_job(tmp_path)
    for _ in range(3):
        assert one.run(A, text, files, {})["outcome"]["failure"][0] == "link_lost" and ended == []
        one.probe()
    assert ended == [station.GAVE_UP]
