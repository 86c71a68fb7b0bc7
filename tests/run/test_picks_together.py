"""Programs that several processes pick are those that one process picks; a process that fails leaves its tasks to the others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansor.algorithms import base
from ansor.algorithms.base import Alternative
from ansor.ir.dag import Dag
from ansor.run import kept_picks, picks_together
from ansor.run.choosing import chosen
from ansor.run.picks_together import pick_together
from ansor.run.states import Guess, TaskState
from ansor.run.zero_tuning import pick
from ansor.tasks.pins import Pin
from ansor.tasks.task import SearchTask
from ansor.te import workloads

SIZES = range(8, 8 + 9 * 4, 4)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    monkeypatch.setenv("ANSOR_JOBS", "3")
    monkeypatch.setattr(kept_picks, "ENABLED", True)
    return tmp_path / kept_picks.FOLDER


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """All processes that are started for picking."""
    processes: list[subprocess.Popen[bytes]] = []

    class Started(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **words: object) -> None:
            super().__init__(command, **words)  # type: ignore[call-overload]
            if command == vars(picks_together)["python_command"](picks_together.PICKER):
                processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Started)
    return processes


@pytest.fixture
def slow_here(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process takes its first task and waits with it until another process has picked a program."""

    def waits(*words: Any, **named: Any) -> Guess:
        deadline = time.monotonic() + 100
        while not list(cache.glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        return pick(*words, **named)

    monkeypatch.setattr(picks_together, "pick", waits)


def states(target: str = "cpu -threads=1") -> list[TaskState]:
    return [TaskState(SearchTask(workloads.matmul, (size, 16, 16), target), 1.0) for size in SIZES]


Programs = list[tuple[str, tuple[int, ...]]]


def programs(found: list[TaskState]) -> Programs:
    return [((best := chosen(state)).sketch.name, tuple(best.row)) for state in found]


@pytest.fixture(scope="module")
def alone() -> Programs:
    """What one process picks that keeps nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_picks, "ENABLED", False)
        return programs(states())


@pytest.mark.usefixtures("slow_here")
def test_several_processes_pick_the_same_programs(cache: Path, alone: Programs, started: list[subprocess.Popen[bytes]]) -> None:
    together = states()
    pick_together(together)
    assert len(started) == 2 and all(one.poll() is not None for one in started)
    assert len(list(cache.glob("*.json"))) == len(SIZES)
    here = sum(state.guess is not None for state in together)
    assert 0 < here < len(SIZES), "this process picks some of them, the others the rest"
    assert programs(together) == alone


class _Scorer:
    """Not a name."""


def test_no_process_is_started_for_few_tasks_kept_picks_one_core_or_a_scorer_of_the_callers(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    few, scored, alone, kept = states()[:3], states(), states(), states()
    pick_together([])
    pick_together(few)
    pick_together(scored, model=_Scorer())  # type: ignore[arg-type]
    monkeypatch.setenv("ANSOR_JOBS", "1")
    pick_together(alone)
    monkeypatch.setenv("ANSOR_JOBS", "3")
    for state in states():
        pick(state.task)
    pick_together(kept)
    assert not started and not any(state.guess for state in (*few, *scored, *alone, *kept))


@pytest.mark.parametrize(
    "code",
    ("import no_such_module", "import time; time.sleep(60)", "import sys, time; print('ready', flush=True); sys.stdin.read(1); time.sleep(60)"),
    ids=("ends", "never begins", "never answers"),
)
def test_a_process_that_ends_or_never_answers_leaves_its_tasks(
    code: str, alone: Programs, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(picks_together, "python_command", lambda module: [sys.executable, "-c", code])
    monkeypatch.setattr(picks_together, "PATIENCE_SECONDS", 0.1)
    left = states()
    pick_together(left)
    assert len(started) == 2 and all(one.poll() is not None for one in started)
    monkeypatch.setattr(kept_picks, "ENABLED", False)
    assert programs(left) == alone


class _Unreadable(str):
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("no pickle of this")


def test_a_task_that_no_other_process_can_read_is_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = states()
    for state in left:
        monkeypatch.setattr(state.task, "name", _Unreadable())
    pick_together(left)
    here = sum(state.guess is not None for state in left)
    assert len(list(cache.glob("*.json"))) == here <= len(SIZES)
    assert len(programs(left)) == len(SIZES)


def _also(dag: Dag) -> tuple[Alternative, ...]:
    """Another declaration of the same computation: the same one."""
    return (Alternative("also", dag),)


def test_tasks_with_parts_of_others_are_left_out(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    pinned = [TaskState(SearchTask(workloads.matmul, (size, 16, 16), "cpu -threads=1", pins=[Pin("*.j", (..., 4))]), 1.0) for size in SIZES]
    pick_together(pinned)
    monkeypatch.setitem(base._algorithms, "also", _also)
    pick_together(states())
    assert not started and not any(state.guess for state in pinned)


def test_an_error_here_stops_the_other_processes(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    def fails(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(picks_together, "pick", fails)
    with pytest.raises(KeyboardInterrupt):
        pick_together(states())
    assert len(started) == 2 and all(one.poll() is not None for one in started)


def test_no_thread_for_a_process_is_no_error(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    alone = states()
    pick_together(alone)
    assert all(state.guess is not None for state in alone) and all(one.poll() is not None for one in started)


def test_an_interrupt_while_processes_start_stops_those_that_did(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    usual = subprocess.Popen

    def interrupted(command: list[str], **words: Any) -> subprocess.Popen[bytes]:
        if started:
            raise KeyboardInterrupt
        return usual(command, **words)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pick_together(states())
    assert len(started) == 1 and started[0].poll() is not None


@pytest.mark.usefixtures("slow_here")
def test_the_working_directory_is_not_searched_for_modules(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    (tmp_path / "pickle.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    found = states()
    pick_together(found)
    assert len(started) == 2 and sum(state.guess is not None for state in found) < len(list(cache.glob("*.json"))), "another process has picked a program"
    assert not (tmp_path / "ran").exists()
