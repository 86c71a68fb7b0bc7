"""One device, and programs for several targets in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.farm import station
from ansor.farm.codec import pack_job
from ansor.farm.health import WELL_AGAIN
from tests.pretended_device import PretendedDevice, job

A, B = "cpu -threads=1", "cpu -threads=2"


def test_a_throttled_device_is_found_by_targets_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station, "open_device", lambda text, target: PretendedDevice(text))
    one = station.Station(f"pretended:d,{tmp_path},0,clock", "key", tmp_path / "files", lambda: None)
    (tmp_path / "files").mkdir()
    packed = pack_job(job(tmp_path, "1"))
    files = {digest: path.read_bytes() for digest, path in packed.files.items()}

    def ran(target: str) -> bool:
        return "outcome" in one.run(target, packed.text, files, {"text": packed.text, "every": 2})

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
