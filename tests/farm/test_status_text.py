"""What `ansor farm status` prints."""

from __future__ import annotations

from ansor.farm.status import DeviceStatus, FarmStatus, JobCounts
from ansor.farm.status_text import WIDTH, status_lines

WHY = "a program of known cost takes 2.00 times as long as usual: it is throttled, or other work is running; if that is its speed now, restart its worker"


def test_a_table_with_whole_reasons_below() -> None:
    devices = (
        DeviceStatus("tcp://a", "rk3399", "ssh://pi@board1", True, JobCounts(12, 1, 3, "crash: SIGSEGV")),
        DeviceStatus("tcp://b", "a-key-that-is-too-long", "agent://board17.laboratory.example.com:9190", False, JobCounts(), WHY),
        DeviceStatus("tcp://c", "rk3399", "local", False, JobCounts(7)),
    )
    lines = status_lines(FarmStatus(devices, 4, "http://127.0.0.1:8787/status"))
    assert lines[0].split() == ["key", "device", "state", "trials", "failed", "per", "min"]
    assert lines[1].split() == ["a-key-that...", "agent://board17.laboratory...", "suspended", "0", "0", "0"]
    assert " ".join("\n".join(lines[2:5]).split()) == f"suspended: {WHY}"
    assert lines[5].split() == ["rk3399", "local", "free", "7", "0", "0"]
    assert lines[6].split() == ["rk3399", "ssh://pi@board1", "busy", "12", "1", "3"] and lines[7] == "  last failure: crash: SIGSEGV"
    assert lines[8:] == ["3 devices, 4 waiting", "dashboard: http://127.0.0.1:8787/status"]
    assert max(map(len, lines)) <= WIDTH and len({len(line) for line in (lines[0], lines[1], lines[5], lines[6])}) == 1


def test_a_farm_without_devices_says_how_to_start_one() -> None:
    assert status_lines(FarmStatus((), 0)) == ["no devices: start some with `ansor farm worker`"]
