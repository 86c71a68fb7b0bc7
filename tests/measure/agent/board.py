"""A board for tests of faults: an agent that listens. Its processes can be killed or stopped, restarted at the same port, or held in a trial."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

import pytest

from ansor import te
from ansor.measure.agent.address import Address, read_address
from ansor.measure.device import Job, Observation
from ansor.measure.devices.agent import AgentDevice
from ansor.measure.failure import Failure
from ansor.measure.timing import Stopping, TimingOptions
from ansor.tasks.task import SearchTask
from tests.measure.agent.serving import KEY

EVENT_SECONDS = 90.0
TRIALS = 6
TIMING = TimingOptions(repeat=1, min_repeat_ms=0.1, stopping=Stopping(contender_repeats=0), timeout_seconds=2.0)

# Runs in front of every job. Trials are counted; the one whose number is in the file `hold` does not end.
FRONT = """#!/bin/sh
cd {folder} || exit 1
if [ "$2" = trial ]; then
    echo "$1" >> begun
    if [ "$(wc -l < begun)" = "$(cat hold)" ]; then touch held; exec sleep 600; fi
fi
cd "$OLDPWD" && exec "$@"
"""


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for an event."""
    deadline = time.monotonic() + EVENT_SECONDS
    while not happened():
        if time.monotonic() >= deadline:
            pytest.fail(f"never: {what}")
        time.sleep(0.01)


def descendants(process: int) -> list[int]:
    """All descendants of a process."""
    found: list[int] = []
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def send(number: signal.Signals, processes: list[int]) -> None:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, number)


def front(folder: Path, hold: int) -> Path:
    """The program in front of jobs; it holds trial `hold` (from 1), none for 0."""
    script = folder / "front"
    script.write_text(FRONT.format(folder=shlex.quote(str(folder))))
    script.chmod(0o700)
    (folder / "hold").write_text(f"{hold}\n")
    return script


def begun(folder: Path) -> list[int]:
    """How often each program was begun, the fewest first."""
    return sorted(Counter((folder / "begun").read_text().split()).values())


def task() -> SearchTask:
    """Something small to tune."""
    a, b, k = te.placeholder((24, 24), name="A"), te.placeholder((24, 24), name="B"), te.reduce_axis((0, 24), name="k")
    declared = [a, b, te.compute((24, 24), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]
    return SearchTask(tensors=declared, target="cpu -threads=1", name="product")


class Board:
    """The agent's files are in `folder / "store"`. `options`: of the agent."""

    def __init__(self, agent: Path, folder: Path, *options: str, hold: int = 0) -> None:
        self.folder, self.store, self.key = folder, folder / "store", folder / "key"
        self.key.write_bytes(KEY)
        self.key.chmod(0o600)
        self._words = [str(agent), "-key", str(self.key), "-store", str(self.store), "-with", str(front(folder, hold)), *options]
        self.port = 0
        self._changing = Lock()  # a run can notice that the agent is gone, and start the next, before `kill` has ended
        self.start()

    def start(self) -> None:
        """Start an agent at the same port as the one before."""
        with self._changing:
            self.process = subprocess.Popen([*self._words, "-listen", f"127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            assert self.process.stdout is not None
            words = self.process.stdout.readline().split()
        assert words[:3] == ["listening", "on", "port"], words
        self.port = int(words[3])

    @property
    def address(self) -> Address:
        return read_address(f"agent://127.0.0.1:{self.port}?key={self.key}")

    def kill(self, *, but_sessions: bool = False) -> list[int]:
        """Send SIGKILL to all of it; returns what was left: sessions that are stopped, and their jobs."""
        with self._changing:
            tree = descendants(self.process.pid)
            send(signal.SIGSTOP if but_sessions else signal.SIGKILL, tree)
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
        return tree

    def lose_files(self) -> None:
        """Lose the files, as a store in memory does when a board restarts."""
        with self._changing:
            shutil.rmtree(self.store)

    def wait_held(self) -> None:
        until((self.folder / "held").exists, "a trial is held")

    def wait_idle(self) -> None:
        """Wait until no job runs."""
        until(lambda: not self._busy(), "the agent is free")

    def wait_busy(self) -> None:
        """Wait until a job runs."""
        until(self._busy, "the agent has a job")

    def _busy(self) -> bool:
        with suppress(FileNotFoundError), (self.store / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


class Seen(AgentDevice):
    """A device that remembers its answers. `after_failure` is called after the first failure, before the run gets it."""

    def __init__(self, address: Address, after_failure: Callable[[], None] = lambda: None) -> None:
        super().__init__(address)
        self.outcomes: list[Observation | Failure] = []
        self._after_failure = after_failure

    def run(self, job: Job) -> Observation | Failure:
        outcome = super().run(job)
        self.outcomes.append(outcome)
        if isinstance(outcome, Failure) and len(self.failures) == 1:
            self._after_failure()
        return outcome

    @property
    def failures(self) -> list[str]:
        """The kinds of all failures."""
        return [outcome.kind for outcome in self.outcomes if isinstance(outcome, Failure)]
