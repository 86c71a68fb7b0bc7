"""Tuning beside the process that runs networks: one at a time, each in a process of its own, which ends with this one."""

from __future__ import annotations

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ansor.support.text import first_line

PATIENCE_SECONDS = 3.0
"""So long a process that was asked to end may take."""
MODULE = "ansor.networks.background_tuner"


@dataclass(frozen=True)
class Wish:
    """A network to tune. job: what its process is told; better: is called when a faster one is kept; say: gets a line where something goes wrong."""

    job: Mapping[str, object]
    better: Callable[[], None]
    say: Callable[[str], None]


class Tuners:
    """A queue of wishes, and the thread that grants them. `process`: the one that tunes now."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.process: subprocess.Popen[str] | None = None
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._ended = False
        threading.Thread(target=self._work, name="ansor-background", daemon=True).start()
        atexit.register(self.end)

    def add(self, wish: Wish) -> None:
        """After those that are waiting."""
        self._wishes.put(wish)

    def end(self) -> None:
        """Stop what goes on; nothing begins any more. A forked child leaves its parent's alone."""
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
            os.killpg(process.pid, signal.SIGKILL)  # what it started, too

    def _work(self) -> None:
        while True:
            wish = self._wishes.get()
            try:
                self._grant(wish)
            except Exception as error:  # nobody is there to be told otherwise
                self._tell(wish, first_line(error))

    def _grant(self, wish: Wish) -> None:
        if self._ended:
            return
        command = [sys.executable, "-m", MODULE, json.dumps({**wish.job, "parent": self.owner})]
        heard, said = "", False
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        ) as process:
            self.process = process
            assert process.stdout is not None
            for line in process.stdout:
                heard, _, rest = line.strip().partition(" ")
                if heard == "better":
                    wish.better()
                elif heard == "failed":
                    said = True
                    self._tell(wish, rest)
        if heard != "done" and not said:
            self._tell(wish, f"its process ended with status {process.returncode}")

    def _tell(self, wish: Wish, why: str) -> None:
        if not self._ended:
            with suppress(Exception):  # a warning that is an error is one in this thread, where it says nothing to anybody
                wish.say(f"tuning in the background ended: {why}")


_tuners: list[Tuners] = []


def tune(wish: Wish) -> None:
    """When those before it are done. A forked child has a queue of its own."""
    if not _tuners or _tuners[-1].owner != os.getpid():
        _tuners[:] = [Tuners()]
    _tuners[-1].add(wish)
