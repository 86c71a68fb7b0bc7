"""Characters in bulk are those of single scans, and a port reads from them what was put in."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.measure.wire import jtag_characters as jtag
from ansor.measure.wire.jtag_characters import IDLE, ModuleScans
from tests.measure.wire.fake_debug_module import IDLE as IN_IDLE
from tests.measure.wire.fake_debug_module import FakeDebugModule


def test_a_path_is_two_characters_a_clock() -> None:
    assert jtag.path("10") == b"2604"


def test_a_scan_goes_to_shift_and_ends_in_update() -> None:
    assert jtag.scan(0b01, 2) == b"2604" b"04" b"15" b"26" b"26"
    assert jtag.scan(0b10, 2, answer=(1, 2)) == b"2604" b"04" b"04" b"3R7" b"26"


def test_an_instruction_goes_through_the_instruction_states() -> None:
    assert jtag.instruction(1, 2) == b"2626" b"0404" b"15" b"26" b"26"


@pytest.mark.parametrize("registers", [(4,), (5, 4), (7, 6, 5, 4)])
def test_rows_of_writes_are_scans_one_by_one(registers: tuple[int, ...]) -> None:
    scans, after = ModuleScans(7), IDLE * 3
    words = np.random.default_rng(1).integers(0, 1 << 32, (20, len(registers)), np.uint32)
    words[0], words[1] = 0, 0xFFFFFFFF
    single = [b"".join(scans.one(jtag.WRITE, register, word) for register, word in zip(registers, row, strict=True)) + after for row in words.tolist()]
    assert scans.writes(words, registers, after) == b"".join(single)
    assert scans.writes(words[:, ::-1], registers, b"")[: len(scans.one(jtag.WRITE))] == scans.one(jtag.WRITE, registers[0], int(words[0, -1]))


def test_rows_of_reads_ask_for_words_alone() -> None:
    scans = ModuleScans(7)
    text = scans.reads(10, (5, 4), IDLE)
    assert text.count(b"R") == 10 * 2 * 32 and text.count(IDLE) >= 10


def test_a_port_gives_its_idcode_and_stays_where_it_is_said_to() -> None:
    chip = FakeDebugModule(idcode=0x12345679)
    text = jtag.TO_RESET + IDLE + jtag.instruction(1, 5) + jtag.scan(0, 32, answer=(0, 32)) + IDLE
    said = [answer for answer in map(chip.step, text) if answer is not None]
    assert jtag.number(np.array(said, np.uint8) - 48) == 0x12345679
    assert chip.state == IN_IDLE


def test_words_come_lowest_bit_first() -> None:
    bits = np.zeros(64, np.uint8)
    bits[[0, 33]] = 1
    assert jtag.words_of(bits).tolist() == [1, 2]
    assert jtag.number(bits) == 1 | 1 << 33
