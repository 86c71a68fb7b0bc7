"""QEMU's boards with the monitor on them, behind a TCP connection to their serial line."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence

import pytest

from ansor.measure.wire.monitor_build import built_monitor
from ansor.measure.wire.port import Port, socket_port
from ansor.measure.wire.serial import SerialWire
from ansor.measure.wire.wire import WireError
from ansor.testing.wire_contract import WireContract
from tests.emulators import need_micro

COMMANDS = {
    "riscv32-virt": ("qemu-system-riscv32", "-M", "virt", "-bios", "none"),
    "riscv64-virt": ("qemu-system-riscv64", "-M", "virt", "-bios", "none"),
    "mps2-an385": ("qemu-system-arm", "-M", "mps2-an385"),
    "mps2-an386": ("qemu-system-arm", "-M", "mps2-an386"),
    "mps2-an500": ("qemu-system-arm", "-M", "mps2-an500"),
}
START_SECONDS = 20.0


class Simulator:
    """One QEMU at a time for a board; a reset starts another one."""

    def __init__(self, board: str, more: Sequence[str] = ()) -> None:
        self.board, self.more = board, more
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> Port:
        """A new process, and the port to its serial line."""
        self.stop()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = number = taken.getsockname()[1]
        line = f"tcp:127.0.0.1:{number},server=on,wait=off,nodelay=on"
        command = (*COMMANDS[self.board], "-kernel", str(built_monitor(self.board)), "-display", "none", "-monitor", "none", "-serial", line, *self.more)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return socket_port("127.0.0.1", number, self.board)
            except WireError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(START_SECONDS)
            self.process = None

    def wire(self, resets: bool = True) -> SerialWire:
        """A wire to a new process; if it may not reset the board, only the monitor can."""
        return SerialWire(self.start(), self.board, self.start if resets else None)


class OnBoard(WireContract):
    """The tests of wires, on a board of `COMMANDS`: fewer bytes, since its line is slow."""

    board = ""
    sizes, alignments, steps, large = (1, 4, 7, 64), (0, 3), 10, 1501

    @pytest.fixture(autouse=True)
    def simulator(self) -> Iterator[None]:
        need_micro()
        self.one = Simulator(self.board)
        yield
        self.one.stop()

    def open(self) -> SerialWire:
        return self.one.wire()
