from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansor.errors import DeviceError
from ansor.measure import device_kinds as device_kinds_module
from ansor.measure.device_kinds import DeviceKind, check_devices, check_forms, device_kinds, find_kind, open_devices, usable_kind
from ansor.measure.devices.local import LocalDevice
from ansor.targets import base
from ansor.targets.base import parse_target
from ansor.targets.unit import INSTRUCTIONS

CPU = parse_target("cpu -threads=1")


class Other(LocalDevice):
    name, model, unit = "other", "another board", INSTRUCTIONS

    def __init__(self) -> None:
        pass


def test_this_machine_is_a_device() -> None:
    assert "local" in [kind.name for kind in device_kinds()] and find_kind("local").help == "this machine"


def test_an_unknown_device_is_told_with_those_there_are() -> None:
    with pytest.raises(DeviceError, match="asked for device 'fleet://x:1'; the kinds of devices are .*local"):
        find_kind("fleet://x:1")
    with pytest.raises(DeviceError, match=r"asked for device 'locla' \(did you mean local\?\); the kinds"):
        find_kind("locla")


def test_devices_that_do_not_compare_are_refused() -> None:
    with pytest.raises(DeviceError, match="are not comparable"):
        open_devices([LocalDevice(), Other()], CPU)
    with pytest.raises(DeviceError, match="local twice"):
        open_devices(["local", "local"], CPU)
    with pytest.raises(DeviceError, match="no device"):
        open_devices([], CPU)
    assert [one.name for one in open_devices(None, CPU)] == ["local"]


class Opened(LocalDevice):
    """Of a model of its own; counts what is open."""

    unit, open = INSTRUCTIONS, 0

    def __init__(self, name: str) -> None:
        self.name = self.model = name
        Opened.open += 1

    def close(self) -> None:
        Opened.open -= 1


def test_devices_are_let_go_of_when_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_kinds_module, "device_kinds", lambda: (DeviceKind("board", "a board", lambda text, target, say: Opened(text)),))
    with pytest.raises(DeviceError, match="are not comparable"):
        open_devices(["board:1", "board:2"], CPU)
    with pytest.raises(DeviceError, match="board:1 twice"):
        open_devices(["board:1", "board:1"], CPU)
    monkeypatch.setattr(Opened, "form", "")
    with pytest.raises(DeviceError, match="whose form is ''"):
        open_devices("board:1", CPU)
    assert Opened.open == 0


def test_a_kind_in_seconds_is_refused_on_its_own_device_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = DeviceKind("board", "a board", lambda text, target, say: Opened(text))
    monkeypatch.setattr(device_kinds_module, "device_kinds", lambda: (kind, *device_kinds()))
    monkeypatch.setattr(base, "_kinds", {**base._kinds, "cpu": replace(base.find_kind("cpu"), device="board")})
    told = "on its own device board, which counts instructions, but the kind cpu says seconds; give the Kind the unit of its device"
    with pytest.raises(DeviceError, match=told):
        open_devices(None, CPU)
    assert Opened.open == 0
    assert [one.name for one in open_devices("board", CPU)] == ["board"]  # asked for: an agent or a simulator of the user's choice
    monkeypatch.setattr(base, "_kinds", {**base._kinds, "cpu": replace(base.find_kind("cpu"), unit=INSTRUCTIONS)})
    assert [one.name for one in open_devices(None, CPU)] == ["board"]
    monkeypatch.setattr(Opened, "open", 0)


@pytest.mark.parametrize(("lacking", "told"), [
    ({"name": ""}, "whose name is ''"), ({"model": None}, "whose model is None, not a string"), ({"form": 3}, "whose form is 3"),
    ({"unit": "ticks"}, "whose unit is 'ticks', not a Unit"), ({"alone": 1}, "whose alone is 1, not True or False"),
    ({"run": None}, "whose method run is missing"),
])  # fmt: skip
def test_what_is_no_device_is_told(lacking: dict[str, object], told: str) -> None:
    device = Other()
    vars(device).update(lacking)
    for call in (open_devices, check_devices):
        with pytest.raises(DeviceError, match=told):
            call(device, CPU)


def test_a_form_that_nobody_makes_is_told() -> None:
    device = Other()
    device.form = "tape"
    with pytest.raises(DeviceError, match="on other, which runs the form 'tape'; mine 1.0 makes library and program: choose another device"):
        check_forms([device], SimpleNamespace(version="mine 1.0", forms=lambda: ("library", "program")), CPU)


@pytest.mark.parametrize(("text", "told"), [
    ("local:2", "'local:2'; write local, with nothing after it"), ("spike:x", "'spike:x'; write spike, with nothing after it"),
    ("vta-sim:fast", "its models are vta-sim:hls"), ("agent://board", "write agent://HOST:PORT"), ("agent-stdio:", "write the agent's command"),
    ("ssh://", "write ssh://HOST"), ("gdb://board", "is not gdb://HOST:PORT"), ("bitbang://board", "write bitbang://HOST:PORT"),
    ("serial:?baud=1", "no port is named"), ("socket://board", "host or port is missing"), ("farm://127.0.0.1:1", "name a key"),
])  # fmt: skip
def test_a_text_that_cannot_be_read_is_told_before_anything_is_opened(text: str, told: str) -> None:
    with pytest.raises(DeviceError, match=told):
        usable_kind(text)
    with pytest.raises(DeviceError, match=told):
        check_devices([LocalDevice(), text], CPU)


@pytest.mark.parametrize("text", [
    "local", "vta-sim", "vta-sim:hls", "agent://board:9190", "agent://board:9190?key=file", "agent-stdio:./agent",
    "ssh://pi@board:22/agent", "gdb://board:3333",
    "gdb:/dev/ttyACM0?baud=9600", "bitbang://board:9824", "serial:/dev/ttyUSB0?reset=dtr", "/dev/ttyUSB0", "socket://board:4000",
])  # fmt: skip
def test_a_text_that_can_be_read_is_checked_without_opening_it(text: str) -> None:
    kind = find_kind(text)
    kind.check(text)
    assert text.startswith((kind.name, "/dev/"))
