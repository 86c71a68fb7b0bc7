"""A simulated Cortex-M4 with the monitor, behind a serial line that is as slow as a real one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ansor.measure.wire.serial import SerialWire
from ansor.testing.paced_port import BITS_A_BYTE, PacedPort
from tests.measure.wire.monitor_boards import Simulator

BOARD = "mps2-an386-serial"
TARGET = f"micro -board={BOARD}"
COUNTED = ("-icount", "shift=7")  # as the board's file says


@contextlib.contextmanager
def paced_line(baud: int) -> Iterator[Callable[[str], SerialWire]]:
    """The function with which `BoardDevice` opens the wire; each opening restarts the board."""
    simulator, rate = Simulator("mps2-an386", COUNTED), baud / BITS_A_BYTE
    try:
        yield lambda text: SerialWire(PacedPort(simulator.start(), rate), text, None, rate)
    finally:
        simulator.stop()
