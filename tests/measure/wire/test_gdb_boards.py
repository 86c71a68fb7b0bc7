"""The GDB wire against real servers: QEMU's for four processors, and OpenOCD's in front of Spike."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.image.board import Memory
from ansor.codegen.image.elf import Segment
from ansor.measure.boards.flash import FlashLoader
from ansor.measure.wire.gdb import GdbWire, open_gdb
from ansor.measure.wire.wire import FlashError, FlashRegion, WireError
from ansor.targets.boards.catalogue import find_board
from ansor.testing.wire_contract import FlashContract, WireContract
from ansor.testing.wire_programs import THUMB
from tests.emulators import need_micro
from tests.measure.wire.simulated_boards import qemu, spike_and_openocd, spike_with_flash


class OverGdb(WireContract):
    """One simulator for all tests of a class: what one test leaves, the next one finds."""

    machine = ""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls) -> Iterator[None]:
        need_micro()
        with qemu(cls.machine) as port:
            cls.port = port
            yield

    port = 0

    def open(self) -> GdbWire:
        return open_gdb(f"gdb://127.0.0.1:{self.port}")


class TestRiscv32(OverGdb):
    machine, nowhere = "riscv32", 0x40


class TestRiscv64(OverGdb):
    machine, nowhere = "riscv64", 0x40


class TestCortexM4(OverGdb):
    machine, programs, memory = "cortex-m4", THUMB, (0x20000000, 0x10000)

    def test_an_odd_address_is_the_code_before_it(self) -> None:
        """As symbols of Thumb functions are."""
        wire = self.open()
        wire.write(0x20000000, self.programs.adds)
        assert wire.execute(0x20000001, 0x20000031, 5.0).pc == 0x20000030
        wire.close()


class TestCortexM55(OverGdb):
    machine, programs, memory = "cortex-m55", THUMB, (0x20000000, 0x8000)


class TestOpenocd(OverGdb):
    """Slow: fewer bytes."""

    memory, sizes, alignments, steps, large = (0x80001000, 0x4000), (1, 2, 3, 4, 7, 8, 13), (0, 1, 3), 12, 2100

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        need_micro()
        with spike_and_openocd(tmp_path_factory.mktemp("spike")) as port:
            cls.port = port
            yield


class TestOpenocdFlash(FlashContract):
    """OpenOCD's driver for STM32F1: its memory map, its packets, and its own code, which writes. Erasing does nothing here, since what is written is RAM."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        need_micro()
        with spike_with_flash(tmp_path_factory.mktemp("spike")) as port:
            cls.port = port
            yield

    port = 0

    def open(self) -> GdbWire:
        return open_gdb(f"gdb://127.0.0.1:{self.port}")

    def test_it_is_the_flash_of_that_chip(self) -> None:
        wire = self.open()
        assert wire.flash() == (FlashRegion(0x08000000, 128 << 10, 1 << 10),)
        wire.close()

    def test_writing_uses_ram(self) -> None:
        """So nothing is known of it afterwards."""
        wire = self.open()
        wire.write(0x20000000, bytes(64))
        wire.program([(0x08000000, bytes(1024))])
        assert wire.read(0x20000000, 64) != bytes(64)
        wire.close()


def test_a_real_server_takes_groups_for_flash_that_does_not_exist(tmp_path: Path) -> None:
    """OpenOCD's driver `faux` keeps what it is sent to itself: reading shows memory, which is as before. So code there is never believed to be written."""
    need_micro()
    with spike_and_openocd(tmp_path, flash="flash bank test faux 0x80040000 0x40000 0 0 riscv.cpu") as port:
        wire = open_gdb(f"gdb://127.0.0.1:{port}")
        assert wire.flash() == (FlashRegion(0x80040000, 0x40000, 0x10000),)
        wire.write(0x80040000, b"as before")
        wire.program([(0x80040000, bytes(0x20000)), (0x80070000, random.Random(6).randbytes(0x10000))])
        assert wire.read(0x80040000, 9) == b"as before"
        with pytest.raises(FlashError, match="1024 bytes of flash at 0x80040400, which are not whole blocks"):
            wire.program([(0x80040400, bytes(1024))])
        board = replace(find_board("spike-rv64"), memories=(Memory("ram", 0x80000000, 0x40000), Memory("flash", 0x80040000, 0x40000, flash=True)))
        loader = FlashLoader(board.with_code("flash"))
        wire.reset()
        loader.check(wire)
        with pytest.raises(FlashError, match="flash does not keep written data: 0x63 was written at 0x80040000, and 0x61 was read back"):
            loader.load(wire, [Segment(0x80040000, b"code")])
        wire.close()


def test_a_simulator_that_is_gone_is_one_sentence() -> None:
    """And one that comes back is found by `reset`."""
    need_micro()
    with qemu("riscv32") as port:
        wire = open_gdb(f"gdb://127.0.0.1:{port}")
        wire.write(0x80000000, b"abc")
    for _ in range(2):
        with pytest.raises(WireError, match="connection"):
            wire.read(0x80000000, 3)
    with pytest.raises(WireError, match="is the GDB server running"):
        wire.reset()
    wire.close()
