"""The contract of wires: a correct wire passes it, and each defective one fails."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest
from elftools.elf.elffile import ELFFile

from ansor.testing.wire_contract import WireContract
from ansor.testing.wire_programs import AARCH64, RISCV, SIZE, STOP, THUMB, X86_64, Programs
from tests.testing.memory_wire import FLAWS, START, Board, MemoryWire


class TestMemoryWire(WireContract):
    """The contract on memory of this process."""

    memory = (START, 0x8000)
    nowhere = 0x1000
    seconds = 0.05
    flaw = ""

    @pytest.fixture(autouse=True)
    def board(self) -> Iterator[None]:
        self._board = Board()
        yield

    def open(self) -> MemoryWire:
        return MemoryWire(self._board, self.flaw)


@pytest.mark.parametrize("flaw", FLAWS)
def test_each_flaw_is_found(flaw: str) -> None:
    """By at least one test of the contract, and as a failure, not as a hang."""
    found = []
    for name, test in inspect.getmembers(WireContract, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        contract = TestMemoryWire()
        contract._board, contract.flaw, contract.patience = Board(), flaw, 0.5
        wire = contract.open()
        try:
            test(contract, wire)
        except (Exception, pytest.fail.Exception):
            found.append(name)
        wire.closed.set()
    assert found


ASSEMBLY = {
    "riscv32-freestanding -mcpu=generic_rv32+zicsr": (RISCV, """
        auipc t0, 0; lw t1, 64(t0); lw t2, 68(t0); add t1, t1, t2; sw t1, 72(t0); .fill 7, 4, 0x13; j .; .balign 256
        auipc t0, 0; addi t0, t0, 32; csrw mtvec, t0; ebreak; nop; nop; nop; nop; j ."""),
    "riscv64-freestanding -mcpu=generic_rv64+zicsr": (RISCV, """
        auipc t0, 0; lw t1, 64(t0); lw t2, 68(t0); add t1, t1, t2; sw t1, 72(t0); .fill 7, 4, 0x13; j .; .balign 256
        auipc t0, 0; addi t0, t0, 32; csrw mtvec, t0; ebreak; nop; nop; nop; nop; j ."""),
    "thumb-freestanding-eabi -mcpu=cortex_m0": (THUMB, """
        .syntax unified; .thumb; adr r0, words; ldr r1, [r0]; ldr r2, [r0, #4]; adds r1, r1, r2; str r1, [r0, #8]; .fill 19, 2, 0xbf00; b .; .balign 64; words:
        .balign 256; adr r0, handler; adds r0, #1; adr r1, table; str r0, [r1, #12]; ldr r2, vtor; str r1, [r2]; mov sp, r1; bkpt #0; handler: b .; nop;
        vtor: .word 0xe000ed08; .balign 128; table: """),
    "x86_64-freestanding": (X86_64, """
        begin: lea words(%rip), %rax; movl (%rax), %ecx; addl 4(%rax), %ecx; movl %ecx, 8(%rax); .fill 48 - (. - begin), 1, 0x90; jmp .; .balign 64; words:
        .balign 256; ud2"""),
    "aarch64-freestanding": (AARCH64, """
        adr x0, words; ldr w1, [x0]; ldr w2, [x0, #4]; add w1, w1, w2; str w1, [x0, #8]; .fill 7, 4, 0xd503201f; b .; .balign 64; words:
        .balign 256; brk #0"""),
}


@pytest.mark.compiler
@pytest.mark.parametrize("target", ASSEMBLY)
def test_the_bytes_equal_the_assemblers(target: str, tmp_path: Path) -> None:
    """Each program is written as bytes; this is the same in assembly language."""
    programs, text = ASSEMBLY[target]
    source, made = tmp_path / "programs.s", tmp_path / "programs.o"
    source.write_text(text.replace(";", "\n") + "\n")
    run([sys.executable, "-m", "ziglang", "cc", *f"--target={target}".split(), "-c", str(source), "-o", str(made)], check=True, timeout=60)
    with made.open("rb") as stream:
        data = ELFFile(stream).get_section_by_name(".text").data()
    assert data.startswith(programs.adds) and data.startswith(programs.traps, SIZE)
    assert data[STOP:STOP + len(programs.loops)] == programs.loops


def test_programs_of_a_wrong_size_are_refused() -> None:
    """The positions of the words are fixed."""
    for adds, loops in ((b"", b""), (bytes(65), b""), (bytes(60), bytes(257))):
        with pytest.raises(ValueError, match="bytes"):
            Programs(adds, loops, b"")
