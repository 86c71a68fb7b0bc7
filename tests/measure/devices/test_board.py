"""Boards behind a wire: the tests of every device, through QEMU's GDB server and Spike's remote bitbang."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from ansor.measure.device import Device
from ansor.measure.devices.board import BoardDevice
from ansor.targets.boards.catalogue import find_board
from ansor.testing.device_contract import DeviceContract
from tests.measure.wire.simulated_boards import qemu
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


class TestCortexM(Behind):
    target, board = "micro -board=mps2-an386", "mps2-an386"

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        with qemu("cortex-m4", "-icount", "shift=6") as port:
            yield f"gdb://127.0.0.1:{port}"


class TestRiscv32(Behind):
    target, board = "micro -board=qemu-riscv32", "qemu-riscv32"

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        with qemu("riscv32", "-icount", "shift=0", "-m", "64M") as port:
            yield f"gdb://127.0.0.1:{port}"


class TestSpike(Behind):
    target, board, trials = "micro -board=spike-rv64", "spike-rv64", 3

    @classmethod
    @contextlib.contextmanager
    def simulated(cls) -> Iterator[str]:
        need_spike()
        with running_spike(64, ("--isa=rv64gc",)) as text:
            yield text


del Behind, DeviceContract
