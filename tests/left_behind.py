"""What tests start ends with them: a process beside pytest waits until pytest has ended, in whatever way, and kills what it left running.

That is found by a variable in its environment, whichever process started it, and in whichever session.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "ANSOR_TESTS"
LOOK_SECONDS = 0.5
SWEEPS, SWEEP_SECONDS = 100, 0.1
"""How often it looks for processes that are left: those that it kills may have started others just before."""


def watch() -> None:
    """Mark what this process starts from now on, and start the process that kills it later. Does nothing on systems without /proc."""
    if not Path("/proc/self/environ").exists():
        return
    unmarked = {name: text for name, text in os.environ.items() if name != MARK}  # it must outlive processes that were started by other tests
    os.environ[MARK] = f"{os.getpid()}-{secrets.token_hex(8)}"
    command = [sys.executable, "-IS", __file__, str(os.getpid()), os.environ[MARK]]
    nothing = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    os.posix_spawn(sys.executable, command, unmarked, file_actions=nothing, setsid=True)  # Ctrl-C and the end of the terminal are for the other session


def marked(mark: str) -> list[int]:
    """The processes with that mark. One that forks without starting a program has that of the program that it comes from."""
    text, found = f"{MARK}={mark}\0".encode(), []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended, or is another user's
            if folder.name.isdigit() and text in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def kill_later(parent: int, mark: str) -> None:
    """Wait until `parent`, which started this process, has ended; then kill the processes with the mark."""
    os.chdir("/")  # it keeps no folder from being removed
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    for _ in range(SWEEPS):
        left = marked(mark)
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not left:
            return
        time.sleep(SWEEP_SECONDS)


if __name__ == "__main__":
    kill_later(int(sys.argv[1]), sys.argv[2])
