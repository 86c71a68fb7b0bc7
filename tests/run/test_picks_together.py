"""Programs that several processes pick are those that one process picks; a process that fails leaves its tasks to the others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansor.run import kept_picks, picks_together
from ansor.run.choosing import chosen
from ansor.run.picks_together import pick_together
from ansor.run.states import TaskState
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
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of all processes that are started."""
    commands: list[list[str]] = []

    class Started(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **words: object) -> None:
            if picks_together.MODULE in command:
                commands.append(command)
            super().__init__(command, **words)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", Started)
    return commands


def states(target: str = "cpu -threads=1") -> list[TaskState]:
    return [TaskState(SearchTask(workloads.matmul, (size, 16, 16), target), 1.0) for size in SIZES]


def programs(found: list[TaskState]) -> list[tuple[str, tuple[int, ...]]]:
    return [((best := chosen(state)).sketch.name, tuple(best.row)) for state in found]


def test_several_processes_pick_the_same_programs(cache: Path, monkeypatch: pytest.MonkeyPatch, started: list[list[str]]) -> None:
    together = states()
    pick_together(together)
    assert len(started) == 2
    assert len(list(cache.glob("*.json"))) == len(SIZES)
    here = sum(state.guess is not None for state in together)
    assert 0 < here < len(SIZES), "this process picks some of them, the others the rest"
    found = programs(together)
    monkeypatch.setattr(kept_picks, "ENABLED", False)
    assert found == programs(states())


def test_no_process_is_started_for_few_tasks_kept_picks_one_core_or_a_judge_of_the_callers(monkeypatch: pytest.MonkeyPatch, started: list[list[str]]) -> None:
    pick_together(states()[:3])
    pick_together(states(), model=_Judge())  # type: ignore[arg-type]
    monkeypatch.setenv("ANSOR_JOBS", "1")
    pick_together(states())
    monkeypatch.setenv("ANSOR_JOBS", "3")
    assert not started and not any(state.guess for state in states())
    for state in states():
        pick(state.task)
    pick_together(states())
    assert not started


class _Judge:
    """Not a name."""


@pytest.mark.parametrize("module", ("ansor.no_such_module", "json.tool"))
def test_a_process_that_ends_or_never_answers_leaves_its_tasks(module: str, monkeypatch: pytest.MonkeyPatch, started: list[list[str]]) -> None:
    monkeypatch.setattr(picks_together, "MODULE", module)
    monkeypatch.setattr(picks_together, "PATIENCE_SECONDS", 0.1)  # json.tool waits for the end of its input
    left = states()
    pick_together(left)
    assert len(started) == 2
    monkeypatch.setattr(kept_picks, "ENABLED", False)
    assert programs(left) == programs(states())


def test_a_task_that_no_other_process_can_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    left = states()
    for state in left:
        monkeypatch.setattr(state.task, "name", _Unreadable())
    pick_together(left)
    assert all(program for program in programs(left))


class _Unreadable(str):
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("no pickle of this")


def test_pins_are_not_forgotten(started: list[list[str]]) -> None:
    pinned = [TaskState(SearchTask(workloads.matmul, (size, 16, 16), "cpu -threads=1", pins=[Pin("*.j", (..., 4))]), 1.0) for size in SIZES]
    pick_together(pinned)
    assert not started and not any(state.guess for state in pinned)


def test_an_error_here_stops_the_other_processes(monkeypatch: pytest.MonkeyPatch, started: list[list[str]]) -> None:
    def fails(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(picks_together, "pick", fails)
    with pytest.raises(KeyboardInterrupt):
        pick_together(states())
    assert len(started) == 2
