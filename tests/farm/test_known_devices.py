"""Devices by identity: what they did, and what the canary costs on those that are there."""

from __future__ import annotations

from ansor.farm.known_devices import MOST_DEVICES, MOST_LINES, KnownDevices


def test_devices_of_one_name_are_not_mixed_up() -> None:
    devices = KnownDevices()
    for identity in ("here", "there"):
        devices.hear(identity, "local (7)", f"tcp://{identity}:1")
    devices.note_done("here")
    devices.note_done("here")
    devices.note_done("there")
    assert devices.lines() == ["local (7): 1 job done", "local (7): 2 jobs done"]


def test_only_devices_that_are_there_are_compared_with() -> None:
    devices = KnownDevices()
    for identity, canary in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        devices.hear(identity, identity, f"at {identity}", canary)
    assert devices.others("a", ["at a", "at b", "at c"]) == (2.0, 3.0)
    assert devices.others("a", ["at a", "at c"]) == (3.0,)
    devices.hear("b", "b", "elsewhere")  # a refusal says nothing of the canary
    assert devices.others("a", ["elsewhere"]) == (2.0,)
    devices.forget_canary("b")
    assert devices.others("a", ["elsewhere"]) == ()


def test_only_so_many_are_kept_and_shown() -> None:
    devices = KnownDevices()
    for number in range(MOST_DEVICES + 10):
        devices.hear(str(number), f"d{number:05}", "there", 1.0)
    devices.note_done("0")  # forgotten meanwhile
    devices.forget_canary("0")
    assert len(devices.others("none", ["there"])) == MOST_DEVICES
    assert len(devices.lines()) == MOST_LINES + 1 and devices.lines()[-1] == f"and {MOST_DEVICES - MOST_LINES} devices more"
