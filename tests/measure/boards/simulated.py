"""Simulated boards behind a wire: one process, initially halted, whose memory persists from trial to trial."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from ansor.measure.devices.simulator import find_program
from ansor.targets.boards.catalogue import find_board
from tests.measure.wire.simulated_boards import free_port, running, wait_for


@contextlib.contextmanager
def qemu_gdb(name: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """QEMU with a board of the catalogue, behind its GDB server; the text of the wire, and the process."""
    words = [find_program(find_board(name).run.command[0]), *find_board(name).run.command[1:]]
    kernel = words.index("-kernel")
    words[kernel : kernel + 2] = []
    words[words.index("stdio")] = "null"
    port = free_port()
    with running([*words, "-S", "-gdb", f"tcp:127.0.0.1:{port}"]) as process:
        wait_for(process, port)
        yield f"gdb://127.0.0.1:{port}", process
