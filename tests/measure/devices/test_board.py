"""Boards behind a wire: the tests of every device, through QEMU's GDB server and Spike's remote bitbang."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from ansor.measure.builder import Builder
from ansor.measure.device import Device, Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.targets.boards.catalogue import find_board
from ansor.testing.device_contract import TIMING, DeviceContract, product
from tests.measure.boards.simulated import qemu_gdb
from tests.spikes import need_spike, running_spike

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]


class Behind(DeviceContract):
    """A board that is started once for a class."""

    board = ""
    link = ""

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        raise NotImplementedError
        yield

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def started(cls, boards: None) -> Iterator[None]:
        with cls.simulated() as cls.link:
            yield

    def open(self) -> Device:
        return BoardDevice(self.link, find_board(self.board))


class OverGdb(Behind):
    """QEMU, started once."""

    long = 48

    @property
    def target(self) -> str:  # type: ignore[override]  # that of the board
        return f"micro -board={self.board}"

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        with qemu_gdb(cls.board) as (text, _):
            yield text

    def test_counts_are_those_of_a_fresh_simulator_and_no_tensor_is_sent(self, device: Device, builder: Builder) -> None:
        task, artifact, reference = self._built(builder, product(), product())
        fresh = SimulatorDevice("qemu-system", find_board(self.board))
        there, here = device.run(Job(task, artifact, reference, TIMING)), fresh.run(Job(task, artifact, reference, TIMING))
        fresh.close()
        assert isinstance(there, Observation) and isinstance(here, Observation), (there, here)
        assert there.costs == here.costs and there.check == "compared with the reference on the device"
        assert there.counters["tensor_bytes_sent"] == 0 and there.counters["stack_bytes_used"] > 0
        again = device.run(Job(task, artifact, reference, TIMING))
        assert isinstance(again, Observation) and again.costs == there.costs and again.counters["wire_bytes_sent"] < 2000


class TestCortexM(OverGdb):
    board = "mps2-an386"


class TestRiscv32(OverGdb):
    board = "qemu-riscv32"


class TestSpike(Behind):
    target, board, trials = "micro -board=spike-rv64", "spike-rv64", 3

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        need_spike()
        with running_spike(64, ("--isa=rv64gc",)) as text:
            yield text


del Behind, OverGdb, DeviceContract
