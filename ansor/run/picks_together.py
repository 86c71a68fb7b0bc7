"""Picks the programs of many tasks in several processes, since picking is mostly Python. What other processes pick arrives through the cache of picks.

Tasks of a process that fails, or that does not answer, are left to whoever asks for their programs next.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from ansor.cost_model.base import CostModel
from ansor.run import kept_picks
from ansor.run.states import TaskState
from ansor.run.zero_tuning import judge_for, mark_of, pick
from ansor.support.settings import jobs
from ansor.targets.base import BUILTIN
from ansor.tasks.task import SearchTask

MODULE = "ansor.run.pick_process"
TASKS_EACH = 4
"""For fewer tasks no other process is started: that takes about as long as two picks."""

PATIENCE_SECONDS = 60.0
"""How long another process may take for its last task when all others are picked."""

MOST = 8
"""Other processes at the most: each needs about 100 MB."""


def pick_together(states: Sequence[TaskState], model: CostModel | str | None = None, seed: int = 0) -> None:
    """Pick a program for every state without one, into the state or into the cache of picks, where `choosing.chosen` finds it.

    model, seed: as in `pick`. Nothing happens for few tasks, with one core, with a judge that has no name, or without that cache.
    """
    if not kept_picks.ENABLED or jobs() < 2 or not sys.executable or not (model is None or isinstance(model, str)):
        return
    waiting = deque(state for state in states if _needs_pick(state, model, seed))
    others = min(jobs() - 1, len(waiting) // TASKS_EACH, MOST)
    if others < 1:
        return
    with ExitStack() as ended:
        for _ in range(others):
            ended.enter_context(_Picker(waiting, model, seed))
        while waiting:
            with suppress(IndexError):  # another took the last one
                state = waiting.popleft()
                state.guess = pick(state.task, model, seed=seed)


def _needs_pick(state: TaskState, model: str | None, seed: int) -> bool:
    task = state.task
    known = state.best is not None or state.guess is not None or state.trials > 0
    if known or task.pins or task.templates or not task.target.plain_loops or task.target.kind not in BUILTIN:
        return False
    return not kept_picks.is_kept(task, mark_of(judge_for(task.target, model)), seed)


class _Picker:
    """Another process, and a thread that gives it tasks from the end of a queue, one at a time. At the end of a `with` statement it finishes its task."""

    def __init__(self, waiting: deque[TaskState], model: str | None, seed: int) -> None:
        self._waiting, self._asked = waiting, (model, seed)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._work, name="ansor-picker", daemon=True)

    def __enter__(self) -> _Picker:
        with suppress(OSError):
            command = [sys.executable, "-m", MODULE]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        process = self._process
        if process is None:
            return
        self._thread.join(PATIENCE_SECONDS if kind is None else 0.0)
        if self._thread.is_alive():
            process.kill()
            self._thread.join()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()

    def _work(self) -> None:
        """Give tasks until none is left, or until the process does not answer. A task that has no pickle stays for the caller."""
        with suppress(IndexError, OSError):
            while self._answers(self._waiting.pop().task):
                pass

    def _answers(self, task: SearchTask) -> bool:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return False
        try:
            content = pickle.dumps((task, *self._asked))
        except Exception:  # a function of the caller's, for example: any error may be raised
            return True
        process.stdin.write(content)
        process.stdin.flush()
        return bool(process.stdout.readline())
