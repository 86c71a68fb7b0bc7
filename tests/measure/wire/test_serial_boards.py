"""The monitor on QEMU's boards, behind their serial lines."""

from __future__ import annotations

import pytest

from ansor.measure.wire.wire import WireError
from ansor.testing.wire_programs import RISCV, STOP, THUMB
from tests.emulators import need_micro
from tests.measure.wire.monitor_boards import OnBoard, Simulator

pytestmark = pytest.mark.compiler


class TestRiscv32(OnBoard):
    board, memory, programs, nowhere = "riscv32-virt", (0x80010000, 0x4000), RISCV, 0xF0000000


@pytest.mark.parametrize("board", ["riscv64-virt", "mps2-an385", "mps2-an500"])
def test_other_boards_run_programs_and_reset_by_themselves(board: str) -> None:
    need_micro()
    simulator, programs = Simulator(board), RISCV if "riscv" in board else THUMB
    try:
        wire = simulator.wire(resets=False)
        entry = (wire.facts.free[0] + 0xFFFF) & ~0xFFFF
        assert wire.facts.board == board and wire.abilities.resets and not wire.abilities.halts
        for _ in range(2):
            wire.write(entry, programs.adds + (5).to_bytes(4, "little") * 2)
            wire.write(entry + 64, (5).to_bytes(4, "little") * 2)
            assert wire.execute(entry, entry + STOP, 10.0).reason == "stop"
            assert wire.read(entry + 72, 4) == (10).to_bytes(4, "little")
            wire.reset()
        wire.write(entry, b"\x00\xde" * 4 if programs is THUMB else bytes(8))
        stopped = wire.execute(entry, entry + STOP, 10.0)
        assert (stopped.reason, stopped.pc) == ("trap", entry) and "cause" in stopped.cause
        wire.write(entry, programs.loops)
        with pytest.raises(WireError, match="did not end in 0.2 s, and this line cannot halt it; reset the board by hand"):
            wire.execute(entry, entry + STOP, 0.2)
        wire.close()
    finally:
        simulator.stop()
