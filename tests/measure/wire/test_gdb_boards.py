"""The GDB wire against real servers: QEMU's for four processors, and OpenOCD's in front of Spike."""

from collections.abc import Iterator

import pytest

from ansor.measure.wire.gdb import GdbWire, open_gdb
from ansor.measure.wire.wire import WireError
from ansor.testing.wire_contract import WireContract
from ansor.testing.wire_programs import THUMB
from tests.emulators import need_micro
from tests.measure.wire.simulated_boards import qemu, spike_and_openocd


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
