import pytest

from ansor.errors import DeviceError
from ansor.measure.device_kinds import device_kinds, find_kind, open_devices
from ansor.measure.devices.local import LocalDevice
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
    with pytest.raises(DeviceError, match="asked for device 'farm://x:1'; the kinds of devices are .*local"):
        find_kind("farm://x:1")


def test_devices_that_do_not_compare_are_refused() -> None:
    with pytest.raises(DeviceError, match="do not compare"):
        open_devices([LocalDevice(), Other()], CPU)
    with pytest.raises(DeviceError, match="local twice"):
        open_devices(["local", "local"], CPU)
    with pytest.raises(DeviceError, match="no device"):
        open_devices([], CPU)
    assert [one.name for one in open_devices(None, CPU)] == ["local"]
