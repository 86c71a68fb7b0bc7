"""Runs local programs for a device: their time and output are limited, and they end when the device is closed."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OUT_BYTES = 64 << 10
"""Bytes of standard output kept, from its start. An agent on a board keeps as many."""

ERR_BYTES = 2 << 10
"""Bytes of standard error kept, from its end."""

LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of a program. status: negative for a signal, None if it timed out or was ended. cut: its output was truncated."""

    output: str = ""
    complaint: str = ""
    status: int | None = None
    cut: bool = False


class ProgramRunner:
    """Starts one program at a time. Once `closing` is set none begins, and `interrupt` ends the running one."""

    def __init__(self, closing: threading.Event | None = None) -> None:
        self.closing = closing or threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    def run(self, command: Sequence[str], folder: Path, seconds: float, recipe: Path | None = None) -> ProgramResult:
        """Run it in the folder, with the file `recipe` as its input."""
        process = self._started(command, folder, recipe)
        if process is None:
            return ProgramResult()
        deadline = time.monotonic() + seconds
        reader = _Reader(process)
        try:
            in_time = reader.read(deadline)
        finally:
            with self._starting:  # the pid of a reaped process may belong to another
                self._process = None
            _kill(process)
            status = process.wait()
            reader.close()
        return ProgramResult(*reader.texts, status if in_time and not self.closing.is_set() else None, reader.cut)

    def interrupt(self) -> None:
        """Kill the running program; from any thread."""
        with self._starting:
            if self._process is not None:
                _kill(self._process)

    def _started(self, command: Sequence[str], folder: Path, recipe: Path | None) -> subprocess.Popen[bytes] | None:
        with self._starting, open(recipe or os.devnull, "rb") as given:
            if self.closing.is_set():
                return None
            self._process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, start_new_session=True)
            return self._process


class _Reader:
    """Reads a program's output and keeps part of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stderr is not None
        self._process, self._pipes = process, (process.stdout, process.stderr)
        self._output, self._complaint = bytearray(), bytearray()
        self.cut = False

    @property
    def texts(self) -> tuple[str, str]:
        """Standard output, standard error."""
        return self._output.decode("utf-8", "replace"), self._complaint.decode("utf-8", "replace")

    def read(self, deadline: float) -> bool:
        """Read until the program has ended; False if it has not by the deadline."""
        with selectors.DefaultSelector() as watched:
            for pipe in self._pipes:
                os.set_blocking(pipe.fileno(), False)
                watched.register(pipe, selectors.EVENT_READ)
            ended = False
            while time.monotonic() < deadline and (watched.get_map() or not ended):
                ready = watched.select(LOOK_SECONDS) if watched.get_map() else []
                for key, _ in ready:
                    if not self._take(key.fd, key.fileobj is self._pipes[0]):
                        watched.unregister(key.fileobj)
                if ended and not ready:  # only processes it left running still hold the pipes
                    return True
                ended = ended or _has_ended(self._process, 0.0 if watched.get_map() else LOOK_SECONDS)
                if ended:
                    _kill(self._process)
        return ended

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes:
            pipe.close()

    def _take(self, descriptor: int, output: bool) -> bool:
        """Whether there may be more."""
        with suppress(BlockingIOError):
            part = os.read(descriptor, OUT_BYTES)
            if not part:
                return False
            if output:
                room = OUT_BYTES - len(self._output)
                self._output += part[:room]
                self.cut = self.cut or len(part) > room
            else:
                self._complaint = (self._complaint + part)[-ERR_BYTES:]
        return True


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it has ended, or does so within `seconds`; it is not reaped, so its pid stays its own."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.001)
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill its whole process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
