"""Picks the programs of many tasks in several processes, since picking is mostly Python. What other processes pick arrives through the cache of picks.

Tasks of a process that fails, or that does not answer, are left to whoever asks for their programs next.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from ansor.cost_model.base import CostModel
from ansor.run import kept_picks
from ansor.run.scoring_model import model_mark
from ansor.run.states import TaskState
from ansor.run.zero_tuning import pick
from ansor.support.own_process import python_command
from ansor.support.settings import environment_with, jobs
from ansor.tasks.own_parts import is_ours
from ansor.tasks.task import SearchTask

PICKER = "ansor.run.pick_process"
"""The module that another process runs."""

TASKS_EACH = 4
"""For fewer tasks no other process is started: that takes about as long as two picks."""

MOST = 8
"""Other processes at the most: each needs about 70 MB."""

NO_PICKLE = (pickle.PicklingError, AttributeError, TypeError, RecursionError)
"""What pickling raises: for local functions, for objects that are bound to a process, and for expressions that are nested deeply."""

PATIENCE_SECONDS = 60.0
"""How long other processes may take for their last tasks when all others are picked."""


def pick_together(states: Sequence[TaskState], model: CostModel | str | None = None, seed: int = 0) -> None:
    """Pick a program for every state without one, into the state or into the cache of picks, where `choosing.chosen` finds it.

    model, seed: as in `pick`. Nothing happens for few tasks, with one core, with a model given as an object, or without that cache. Tasks whose sketches
    follow from more than this package are left out.
    """
    if not kept_picks.ENABLED or not (model is None or isinstance(model, str)):
        return
    waiting = deque(state for state in states if _needs_pick(state, model, seed))
    others = min(jobs() - 1, len(waiting) // TASKS_EACH, MOST) if waiting else 0
    if others < 1 or not sys.executable or getattr(sys, "frozen", False):
        return
    pickers: list[_Picker] = []
    try:
        for _ in range(others):
            pickers.append(_Picker(waiting, model, seed))
        while (state := _next(waiting)) is not None:
            state.guess = pick(state.task, model, seed=seed)
        deadline = time.monotonic() + PATIENCE_SECONDS
        for one in pickers:
            one.finish(deadline)
    finally:
        for one in pickers:
            one.kill()
        for one in pickers:
            one.close()


def _needs_pick(state: TaskState, model: str | None, seed: int) -> bool:
    task = state.task
    known = state.best is not None or state.guess is not None or state.trials > 0
    if known or not task.target.plain_loops or not is_ours(task):
        return False
    return not kept_picks.is_kept(task, model_mark(task.target, task.target.unit.name, model), seed)


def _next(waiting: deque[TaskState]) -> TaskState | None:
    with suppress(IndexError):  # another took the last one
        return waiting.popleft()
    return None


class _Picker:
    """Another process, and a thread that gives it tasks from the end of a queue, one at a time."""

    def __init__(self, waiting: deque[TaskState], model: str | None, seed: int) -> None:
        self._waiting, self._asked = waiting, (model, seed)
        self._ready = False
        self._thread = threading.Thread(target=self._work, name="ansor-picker", daemon=True)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                python_command(PICKER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=environment_with({"ANSOR_JOBS": "1"}), start_new_session=True,
            )  # fmt: skip
            self._thread.start()
        except (OSError, RuntimeError):  # no more processes or threads
            self.kill()
        except BaseException:  # Ctrl+C
            self.kill()
            raise

    def finish(self, deadline: float) -> None:
        """Wait for the task that it has, if it has one."""
        if self._ready and self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """End the process: what it kept is whole, and what it did not keep is left."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Wait for the end of the thread and of the process, which was killed."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            self._process.wait()

    def _work(self) -> None:
        """Give tasks until none is left, or until the process does not answer."""
        with suppress(IndexError, OSError):
            self._ready = self._hears(b"ready\n")
            while self._ready and self._is_picked(self._waiting.pop().task):
                pass

    def _is_picked(self, task: SearchTask) -> bool:
        """Whether the process can take another task. One that has no pickle stays for the caller."""
        assert self._process is not None and self._process.stdin is not None
        try:
            content = pickle.dumps((task, *self._asked))
        except NO_PICKLE:
            return True
        self._process.stdin.write(content)
        self._process.stdin.flush()
        return self._hears(b"done\n")

    def _hears(self, line: bytes) -> bool:
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.readline() == line
