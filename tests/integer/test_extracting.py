"""`ansor.extract_int8_tasks`: what is tuned for several boards at once is what `ansor.compile_int8` finds in the records."""

from __future__ import annotations

from pathlib import Path

import pytest

import ansor
from ansor.errors import AnsorWarning, ModelError
from ansor.run.states import TaskState
from tests.integer.models import samples, small

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
BOARDS = ("micro -board=mps2-an386", "micro -board=qemu-riscv32")


@pytest.mark.usefixtures("boards")
def test_one_run_tunes_a_network_for_two_boards(tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    extracted = [ansor.extract_int8_tasks(small(), samples(), board) for board in BOARDS]
    tasks, weights = [task for found in extracted for task in found.tasks], [weight for found in extracted for weight in found.weights]
    states = ansor.tune_tasks(tasks, weights, trials=len(tasks), records=records, progress=False)
    assert len(tasks) == 10 and all(state.best is not None and state.trials == 1 for state in states)
    for board, found in zip(BOARDS, (states[:5], states[5:]), strict=True):
        costs = {kernel.cost for kernel in ansor.compile_int8(small(), samples(), board, records=records).code.kernels}
        assert {state.cost for state in found} == costs - {None}


def test_tasks_are_those_that_the_network_is_tuned_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same computations with the same limits, also for a larger arena."""
    tuned: list[tuple[str, str, float]] = []

    def noted(states: dict[str, TaskState], asked: object, reporter: object) -> None:
        tuned.extend((state.task.workload_key, str(state.task.target), state.weight) for state in states.values())

    monkeypatch.setattr("ansor.integer.compiling.tune_states", noted)
    for arena in (0, 1 << 16):
        tuned.clear()
        ansor.compile_int8(small(), samples(), BOARDS[0], arena_bytes=arena, trials=0)
        tasks, weights = ansor.extract_int8_tasks(small(), samples(), BOARDS[0], arena_bytes=arena)
        found = [(task.workload_key, str(task.target), weight) for task, weight in zip(tasks, weights, strict=True)]
        assert len(found) == 5 and set(found) < set(tuned)  # those without a reduction are not worth tuning


def test_tasks_that_no_board_could_measure_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.integer.extracting.impossible", lambda task: "it is too large" if "dense" in task.name else "")
    with pytest.warns(AnsorWarning, match="it is too large; it is left out"):
        assert len(ansor.extract_int8_tasks(small(), samples(), BOARDS[0]).tasks) == 4


def test_a_network_that_does_not_fit() -> None:
    with pytest.raises(ModelError, match=r"needs \d+ bytes of RAM .* but the board has 500"):
        ansor.extract_int8_tasks(small(), samples(), BOARDS[0], ram_bytes=500)
