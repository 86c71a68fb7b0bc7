"""Times and ticks of boards: counters and timers of 32 bits overflow."""

from __future__ import annotations

from dataclasses import replace

from ansor.codegen.image.board import OVERFLOW
from ansor.codegen.image.harness import defines
from ansor.targets.boards.catalogue import board_names, find_board


def test_a_watchdog_of_32_bits_comes_before_the_counter_overflows() -> None:
    board = find_board("mps2-an386")
    assert board.ticks(1.0) == int(2e8 * 128e-9 * 25e6) and board.ticks(1000.0) == OVERFLOW
    assert find_board("mps3-an547").ticks(1000.0) == 0, "its counter has 64 bits, and its timer compares with that"
    assert replace(board, watchdog=replace(board.watchdog, hertz=1e9)).ticks(1000.0) == 0, "its watchdog would come long before"
    assert find_board("qemu-riscv32").ticks(10000.0) > OVERFLOW


def test_no_simulated_counter_overflows_without_a_watchdog_that_notices() -> None:
    boards = [find_board(name) for name in board_names()]
    counted = {board.name: board.ticks(1e4) for board in boards if board.run.step and not board.counter.csr and board.counter.bits == 32}
    assert "netduinoplus2" in counted and set(counted.values()) == {OVERFLOW}, counted


def test_boards_without_a_watchdog_overflow_after_a_time_of_this_machine() -> None:
    board = find_board("nucleo-l4r5zi")
    assert board.overflow_seconds == (1 << 32) / 4e6
    assert find_board("esp32c3").overflow_seconds == (1 << 32) / 160e6
    assert all(find_board(name).overflow_seconds == float("inf") for name in ("mps2-an386", "qemu-riscv32", "spike-rv64"))
    assert replace(board, counter=replace(board.counter, bits=64)).overflow_seconds == float("inf")


def test_boards_that_protect_memory_keep_candidates_apart() -> None:
    """A guard means an MPU or PMP; ARMv8-M has one without."""
    for name, protects in (("mps2-an386", True), ("mps3-an547", True), ("qemu-riscv32", True), ("rp2040-pico", False), ("rvsim-inorder", False)):
        board = find_board(name)
        assert board.core.protects is protects and ("-DTRIAL_APART=1" in defines(board)) is protects and "-DTRIAL_APART=1" not in defines(board, apart=False)
