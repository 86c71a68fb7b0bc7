"""Tunes networks in the background while this process runs them: one at a time, each in a process of its own, which ends with this one."""

from __future__ import annotations

import atexit
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ansor.support.own_process import python_command
from ansor.support.text import first_line

PATIENCE_SECONDS = 3.0
"""How long a process may take to end after it was asked to."""
MODULE = "ansor.networks.background_tuner"


@dataclass(frozen=True)
class TuningRequest:
    """A network to tune. job: the input of its process; better: called when a faster network is kept; say: gets a line if something goes wrong."""

    job: Mapping[str, object]
    better: Callable[[], None]
    say: Callable[[str], None]


class Tuners:
    """A queue of networks to tune, and the thread that works through it. `process`: the process that is tuning now."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.process: subprocess.Popen[str] | None = None
        self._requests: queue.SimpleQueue[TuningRequest] = queue.SimpleQueue()
        self._ended = False
        threading.Thread(target=self._work, name="ansor-background", daemon=True).start()
        atexit.register(self.end)

    def add(self, request: TuningRequest) -> None:
        """Put a network at the end of the queue."""
        self._requests.put(request)

    def end(self) -> None:
        """Stop the current tuning, and start no other. A forked child does not stop its parent's."""
        if os.getpid() != self.owner:
            return
        self._ended = True
        process = self.process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # and the processes that it started

    def _work(self) -> None:
        while True:
            request = self._requests.get()
            try:
                self._tune(request)
            except Exception as error:  # there is no other place to report it
                self._tell(request, first_line(error))

    def _tune(self, request: TuningRequest) -> None:
        if self._ended:
            return
        command = python_command(MODULE, json.dumps({**request.job, "parent": self.owner}))
        heard, said = "", False
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        ) as process:
            self.process = process
            assert process.stdout is not None
            for line in process.stdout:
                heard, _, rest = line.strip().partition(" ")
                if heard == "better":
                    request.better()
                elif heard == "failed":
                    said = True
                    self._tell(request, rest)
        if heard != "done" and not said:
            self._tell(request, f"its process ended with status {process.returncode}")

    def _tell(self, request: TuningRequest, why: str) -> None:
        if not self._ended:
            with suppress(Exception):  # if warnings are errors, this one would be raised in this thread, where nothing reports it
                request.say(f"tuning in the background ended: {why}")


_tuners: list[Tuners] = []


def tune(request: TuningRequest) -> None:
    """Tune a network when those before it in the queue are done. A forked child has a queue of its own."""
    if not _tuners or _tuners[-1].owner != os.getpid():
        _tuners[:] = [Tuners()]
    _tuners[-1].add(request)
