import pytest

from ansor.measure.device import Device
from ansor.measure.devices.local import LocalDevice
from ansor.testing.device_contract import DeviceContract


@pytest.mark.compiler
class TestLocal(DeviceContract):
    def open(self) -> Device:
        return LocalDevice()
