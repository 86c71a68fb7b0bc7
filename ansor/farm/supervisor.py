"""Runs a worker of a farm in a process of its own, and starts another one if it ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

ENDING_SECONDS = 30.0
"""How long the process of a worker that was told to end may take. Then it is killed."""

AGAIN_SECONDS = 2.0
"""The least time between the starts of two processes."""

ENDS = (signal.SIGTERM, signal.SIGINT)
"""The signals that end a worker."""

ENDED = (0, 1, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
"""The exit statuses of a process that was told to end, or cannot start."""


def supervise(command: Sequence[str], say: Callable[[str], None]) -> int:
    """Run Python with these arguments, and the number of this process, in another one. Returns its exit status if it was told to end, or cannot start."""
    while True:
        started = time.monotonic()
        status = _watched([sys.executable, *command, str(os.getpid())])
        if status in ENDED:
            return max(status, 0)
        say(f"the worker ended with status {status}; restarting it")
        time.sleep(max(0.0, AGAIN_SECONDS - (time.monotonic() - started)))


def unblock_signals() -> None:
    """Let the signals of `ENDS` reach this process. They are blocked from its start until it has its handlers, and calls this."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


def _watched(command: Sequence[str]) -> int:
    """Run a process, and return its exit status. SIGTERM and Ctrl-C end it; if this process is killed, it has to end by itself."""
    process: subprocess.Popen[bytes] | None = None
    told = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _signals_blocked():
            process = subprocess.Popen(command)
        return process.wait()
    except KeyboardInterrupt:
        return 130 if process is None else _ended(process) and 130
    finally:
        signal.signal(signal.SIGTERM, told)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """The signals of `ENDS` arrive when this block ends, so that the process it starts can be told. That process starts with them blocked, too."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield
    finally:
        unblock_signals()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Tell a process to end, and return its exit status. It is killed if it does not end in time, or if this process is told again to end."""
    try:
        process.terminate()
        return process.wait(ENDING_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()
