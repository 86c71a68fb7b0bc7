"""Boards of two kinds in one run: simulated ones behind GDB, which are killed in the middle."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from ansor.api import tune_tasks
from ansor.errors import DeviceError
from ansor.measure.boards import wire_transport
from ansor.measure.record import load
from ansor.run.states import Progress
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from ansor.testing.device_contract import TIMING
from tests.measure.boards.simulated import qemu_gdb

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
ARM, RISCV = "micro -board=mps2-an386", "micro -board=qemu-riscv32"
TASKS = [SearchTask(workloads.matmul, (size, 8, 8), target) for size in (8, 12) for target in (ARM, RISCV)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that has gone is not waited for."""
    monkeypatch.setattr(wire_transport, "RETURN_SECONDS", 0.5)


def killing(process: subprocess.Popen[bytes], target: str, trials: int) -> Callable[[Progress], None]:
    """Kills a board after some trials of its target."""

    def heard(progress: Progress) -> None:
        if str(progress.task.target) == target and progress.trials == trials:
            process.kill()

    return heard


def targets_of(path: Path) -> dict[str, int]:
    """How many trials a file has of each model of boards."""
    found = load(path).records
    assert all(one.unit == INSTRUCTIONS and one.failure is None for one in found)
    return {target: sum(one.target.startswith(f"{target} (") and one.device == target.rpartition("=")[2] for one in found) for target in (ARM, RISCV)}


def test_a_board_that_dies_leaves_its_work_to_the_other_of_its_kind(tmp_path: Path) -> None:
    path, lines = tmp_path / "r.jsonl", list[str]()
    with ExitStack() as on:
        (first, process), (second, _), (third, _) = (on.enter_context(qemu_gdb(name)) for name in ("mps2-an386", "mps2-an386", "qemu-riscv32"))
        states = tune_tasks(
            TASKS, trials=48, devices={ARM: [first, second], RISCV: third}, records=path, timing=TIMING, report=lines.append, progress=False,
            on_progress=killing(process, ARM, 4),
        )  # fmt: skip
    assert [state.task for state in states] == TASKS and all(state.best is not None and state.trials for state in states)
    assert targets_of(path) == {ARM: 24, RISCV: 24}
    assert sum(line.startswith(f"{ARM}: device {first} is left out, {second} continues: ") for line in lines) == 1


def test_the_last_board_of_a_kind_ends_its_target_and_the_same_call_continues(tmp_path: Path) -> None:
    path, lines = tmp_path / "r.jsonl", list[str]()
    with qemu_gdb("mps2-an386") as (arm, _):
        with qemu_gdb("qemu-riscv32") as (riscv, process), pytest.raises(DeviceError, match="is the GDB server running"):
            tune_tasks(
                TASKS, trials=48, devices={ARM: arm, RISCV: riscv}, records=path, timing=TIMING, report=lines.append, progress=False,
                on_progress=killing(process, RISCV, 4),
            )  # fmt: skip
        done = targets_of(path)
        assert done[ARM] == 24 and 4 <= done[RISCV] < 24 and any(line.startswith(f"{RISCV}: stopped") for line in lines)
        with qemu_gdb("qemu-riscv32") as (riscv, _):
            states = tune_tasks(TASKS, trials=48, devices={ARM: arm, RISCV: riscv}, records=path, timing=TIMING, progress=False)
    assert targets_of(path) == {ARM: 24, RISCV: 24} and all(state.best is not None for state in states)
