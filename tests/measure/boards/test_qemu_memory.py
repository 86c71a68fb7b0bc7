"""Memories that QEMU says it has, against those of a board's file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansor.codegen.image.board import Memory
from ansor.errors import DeviceError
from ansor.measure.boards.qemu_memory import Region, check_regions, monitor_command, regions_in
from ansor.targets.boards.catalogue import board_names, find_board

SAID = """(qemu) info mtree -f
FlatView #0
 AS "memory", root: system
  0000000000000000-000000000003ffff (prio 0, rom): stellaris.flash
  0000000020000000-000000002000ffff (prio 0, ram): stellaris.sram
  0000000040000000-0000000040000fff (prio 0, i/o): watchdog-timer
FlatView #1
  0000000020000000-000000002000ffff (prio 0, ram): stellaris.sram
  0000000020010000-0000000020017fff (prio 0, ram): more
"""
FLASH, RAM = Region(0, 0x40000, False), Region(0x2000_0000, 0x2001_8000, True)


def test_regions_are_read_and_neighbours_are_one() -> None:
    assert regions_in(SAID) == [FLASH, RAM] and regions_in("unsupported machine") == []


def test_memory_behind_a_controller_of_trustzone_is_memory() -> None:
    said = """  0000000038000000-00000000383fffff (prio 0, i/o): tz-mpc-upstream
  0000000000000000-ffffffffffffffff (prio 0, i/o): tz-msc-downstream
"""
    assert regions_in(said) == [Region(0x3800_0000, 0x3840_0000, True)]


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (Memory("ram", 0x2000_0000, 0x1_8000), ""),
        (Memory("flash", 0, 0x4_0000, flash=True), ""),
        (Memory("ram", 0x2000_0000, 0x2_0000), "0x20020000, but the memory of qemu-system-arm there ends at 0x20018000; check size of the memory 'ram'"),
        (Memory("ram", 0x3000_0000, 0x1000), r"has no memory at 0x30000000; it has 0x0 to 0x40000 \(read only\), 0x20000000 to 0x20018000; check start of"),
        (Memory("low", 0, 0x1000), "this memory is read-only; check flash of the memory 'low'"),
    ],
)
def test_memories_of_a_file_are_held_against_them(memory: Memory, said: str) -> None:
    board = replace(find_board("mps2-an386"), memories=(memory,))
    check_regions(board, [])
    if not said:
        check_regions(board, [FLASH, RAM])
        return
    with pytest.raises(DeviceError, match=said):
        check_regions(board, [FLASH, RAM])


@pytest.mark.parametrize("name", [one for one in board_names() if find_board(one).run.device == "qemu-system"])
def test_the_monitor_takes_the_place_of_program_and_console(name: str) -> None:
    command = find_board(name).run.command
    made = monitor_command(command)
    assert not any("IMAGE" in word for word in made) and "-kernel" not in made and made[-5:] == ["-serial", "null", "-monitor", "stdio", "-S"]
    assert made[:3] == list(command[:3]) and made.count("-serial") == made.count("-monitor") == 1
