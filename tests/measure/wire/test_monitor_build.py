from __future__ import annotations

import dataclasses

import pytest

from ansor.errors import ToolchainError
from ansor.measure.wire.monitor_build import BOARDS, built_monitor, built_process

MACHINES = {"riscv32-virt": (1, 243), "riscv64-virt": (2, 243)}  # class and machine, as ELF calls them


@pytest.mark.compiler
@pytest.mark.parametrize("board", BOARDS)
def test_the_monitor_is_small_and_needs_nothing(board: str) -> None:
    """What is loaded has no initialised data, so that it also runs from read-only memory."""
    program = built_monitor(board).read_bytes()
    assert program[:4] == b"\x7fELF" and (program[4], int.from_bytes(program[18:20], "little")) == MACHINES.get(board, (1, 40))
    text, writable = _loaded(program)
    assert 2500 < text <= 4300 and writable == 0


def _loaded(program: bytes) -> tuple[int, int]:
    """Bytes in the file that are loaded: all, and those of parts that are written to but not run."""
    wide = program[4] == 2
    places = ((32, 8), (54, 2), (56, 2)) if wide else ((28, 4), (42, 2), (44, 2))
    start, size, count = (int.from_bytes(program[at : at + length], "little") for at, length in places)
    total = data = 0
    for at in range(start, start + size * count, size):
        kind = int.from_bytes(program[at : at + 4], "little")
        flags = int.from_bytes(program[at + 4 : at + 8] if wide else program[at + 24 : at + 28], "little")
        in_file = int.from_bytes(program[at + 32 : at + 40] if wide else program[at + 16 : at + 20], "little")
        if kind == 1:
            total += in_file
            data += in_file if flags & 2 and not flags & 1 else 0
    return total, data


@pytest.mark.compiler
def test_it_is_built_once_and_for_boards_of_ones_own() -> None:
    assert built_process() == built_process()
    mine = dataclasses.replace(BOARDS["stm32f4"], name="mine", chunk=256)
    assert b"mine\0" in built_monitor(mine).read_bytes()


def test_names_that_are_not_known() -> None:
    with pytest.raises(ToolchainError, match="asked for a monitor for 'toaster'; it is known for riscv32-virt, riscv64-virt"):
        built_monitor("toaster")
