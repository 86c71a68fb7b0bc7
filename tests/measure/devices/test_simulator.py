"""Boards that are simulated: the tests of every device, on two processors."""

from __future__ import annotations

import pytest

from ansor.measure.device import Device
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.targets.boards.catalogue import find_board
from ansor.testing.device_contract import DeviceContract

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]


class TestCortexM(DeviceContract):
    target = "micro -board=mps2-an386"

    def open(self) -> Device:
        return SimulatorDevice("qemu-system", find_board("mps2-an386"))


class TestRiscv32(DeviceContract):
    target = "micro -board=qemu-riscv32"

    def open(self) -> Device:
        return SimulatorDevice("qemu-system", find_board("qemu-riscv32"))


class TestSpike(DeviceContract):
    target = "micro -board=spike-rv64"

    def open(self) -> Device:
        return SimulatorDevice("spike", find_board("spike-rv64"))
