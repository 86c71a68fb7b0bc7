"""Boards that are simulated: the tests of every device, on two processors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansor.measure.builder import Builder
from ansor.measure.device import Device, Job, Observation
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.measure.failure import Failure
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.targets.micro import board_of
from ansor.testing.device_contract import TIMING, DeviceContract, product

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


class BoardTests(DeviceContract):
    """What is asked of boards that are like others in the rest."""

    board = ""

    @property
    def target(self) -> str:  # type: ignore[override]  # that of the board
        return f"micro -board={self.board}"

    def open(self) -> Device:
        board = board_of(parse_target(self.target))
        return SimulatorDevice(board.run.device, board)

    test_a_run_is_recorded_once_and_resumed = test_it_opens_again_after_it_was_closed = None  # type: ignore[assignment]  # of the device, not of the board

    def test_counts_are_of_the_program_alone(self, device: Device, builder: Builder) -> None:
        """Other values, other lengths of what is asked: the same number, to the last instruction."""
        task, artifact, reference = self._built(builder, product(), product())
        seen = [device.run(Job(replace(task, seed=seed), artifact, reference, TIMING)) for seed in range(3)]
        assert len({one.costs for one in seen if isinstance(one, Observation)}) == 1 and all(isinstance(one, Observation) for one in seen), seen

    def test_the_watchdog_says_where_a_program_was(self, device: Device, builder: Builder) -> None:
        """Not the simulator's process is ended from outside: the image ends itself, and knows its pc."""
        task, artifact, reference = self._built(builder, product(self.long), product(self.long))
        failure = device.run(Job(task, artifact, reference, replace(TIMING, timeout_seconds=1e-4)))
        assert isinstance(failure, Failure) and failure.kind == "timeout" and failure.text.startswith("it does not end, at pc 0x")


class TestHelium(BoardTests):
    board = "mps3-an547"
    long = 64


class TestFlash(BoardTests):
    board = "netduinoplus2"
    long = 64


class TestCodeInRam(BoardTests):
    board = "netduinoplus2 -code=ram"
    long = 64


class TestRvsim(DeviceContract):
    """Cycles of a model, at 300,000 instructions a second."""

    target = "micro -board=rvsim-inorder"
    trials, size, long = 1, 6, 32

    def open(self) -> Device:
        return SimulatorDevice("rvsim", find_board("rvsim-inorder"))
