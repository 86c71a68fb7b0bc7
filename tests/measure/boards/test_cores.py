"""A board that is another one than its file says: the core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from ansor.api import tune_tasks
from ansor.errors import DeviceError
from ansor.measure.boards.cores import CPUID, check_core, other_core
from ansor.measure.wire.wire import WireError
from ansor.targets.boards.catalogue import find_board
from ansor.tasks.task import SearchTask
from tests.measure.boards.simulated import qemu_gdb
from tests.testing.memory_wire import Board, MemoryWire


@dataclass
class Named(MemoryWire):
    """A core that says which one it is, or has nothing there."""

    cpuid: int = 0

    def read(self, address: int, size: int) -> bytes:
        assert (address, size) == (CPUID, 4)
        if not self.cpuid:
            raise WireError("nothing there")
        return self.cpuid.to_bytes(4, "little")


@pytest.mark.parametrize(
    ("board", "bits", "cpuid", "text"),
    [
        ("mps2-an386", 32, 0x410FC241, ""),
        ("mps3-an547", 0, 0x411FD220, ""),
        ("mps2-an386", 32, 0x410FC231, "has cortex_m4 (thumb); the core behind memory: is cortex_m3 (CPUID 0x410fc231)"),
        ("mps2-an386", 32, 0x12345678, "is unknown (CPUID 0x12345678)"),
        ("mps2-an386", 32, 0, "has no CPUID at 0xe000ed00"),
        ("mps2-an386", 64, 0x410FC241, "addresses of 32 bits; the core behind memory: has 64 bits"),
        ("qemu-riscv32", 64, 0, "qemu-riscv32 has generic_rv32 (riscv32), with addresses of 32 bits"),
        ("qemu-riscv64", 64, 0, ""),
    ],
)
def test_cores(board: str, bits: int, cpuid: int, text: str) -> None:
    wire = Named(Board(), cpuid=cpuid)
    wire.abilities = replace(wire.abilities, bits=bits)
    said = other_core(wire, find_board(board))
    assert text in said and bool(text) == bool(said)


@pytest.mark.usefixtures("boards")
def test_a_simulated_core_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    from ansor.cli import main

    with qemu_gdb("mps2-an386") as (text, _):
        assert main(["micro", "probe", text, "--board", "mps2-an386"]) == 0
        assert main(["micro", "probe", text, "--board", "mps2-an385"]) == 1
    assert "is cortex_m4 (CPUID" in capsys.readouterr().out


@pytest.mark.parametrize("cpuid", [0x410FC241, 0x12345678, 0], ids=["the same", "unknown", "none"])
def test_only_a_known_other_core_is_refused(cpuid: int) -> None:
    check_core(Named(Board(), cpuid=cpuid), find_board("mps2-an386"))
    check_core(Named(Board(), cpuid=0x410FC231), find_board("qemu-riscv32"))
    with pytest.raises(DeviceError, match="mps2-an386 does not match its file: .* is cortex_m3"):
        check_core(Named(Board(), cpuid=0x410FC231), find_board("mps2-an386"))


@pytest.mark.parametrize(
    ("board", "processor", "refused"),
    [
        ("qemu-riscv32", "cortex-m", True), ("qemu-riscv32", "riscv64", True), ("qemu-riscv32", "riscv32", False), ("qemu-riscv32", "", False),
        ("qemu-riscv32", "riscv", False), ("mps2-an386", "riscv32", True), ("mps2-an386", "arm", False), ("mps2-an386", "cortex-m", False),
    ],
)  # fmt: skip
def test_a_processor_of_another_architecture_is_refused(board: str, processor: str, refused: bool) -> None:
    wire = Named(Board(), cpuid=0x410FC241)
    wire.abilities = replace(wire.abilities, processor=processor)
    assert (f"the core behind memory: is {processor}: it is a different board" in other_core(wire, find_board(board))) == refused
    if refused:
        with pytest.raises(DeviceError, match=f"{board} does not match its file: {board} has .*the core behind memory: is {processor}: "):
            check_core(wire, find_board(board))
    else:
        check_core(wire, find_board(board))


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize(("at", "asked"), [("mps2-an386", "qemu-riscv32"), ("qemu-riscv32", "mps2-an386")])
def test_nothing_is_measured_on_a_processor_of_another_architecture(at: str, asked: str) -> None:
    task = SearchTask("matmul", (8, 8, 8), f"micro -board={asked}")
    with qemu_gdb(at) as (text, _), pytest.raises(DeviceError, match=f"{asked} does not match its file: .* it is a different board"):
        tune_tasks([task], trials=2, devices=[text], progress=False)


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_nothing_is_measured_on_another_core() -> None:
    task = SearchTask("matmul", (8, 8, 8), "micro -board=mps2-an386")
    with qemu_gdb("mps2-an385") as (text, _), pytest.raises(DeviceError, match="is cortex_m3 .*: it is a different board"):
        tune_tasks([task], trials=2, devices=[text], progress=False)
