"""Boards whose files are wrong in one place are refused before a trial, with what was found and where to look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.api import tune_tasks
from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board, Watchdog
from ansor.codegen.image.toolchain import IMAGE, PLAIN
from ansor.errors import DeviceError
from ansor.measure.boards import smoke
from ansor.measure.boards.asking import BoardAnswer
from ansor.measure.boards.smoke import cost_of, silence
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import FOLDER, find_board
from ansor.tasks.task import SearchTask

TIMEOUT = '{"failure": ["timeout", "it does not end, at pc 0x10"]}'
M4, RV32, RVSIM = find_board("mps2-an386"), find_board("qemu-riscv32"), find_board("rvsim-inorder")


def said(counts: Sequence[int], line: str = TIMEOUT) -> BoardAnswer:
    marks = [1000]
    for one in counts:
        marks.append(marks[-1] + one)
    return BoardAnswer(line, tuple(marks))


def test_counts_that_grow_with_the_work_are_believed() -> None:
    assert cost_of(M4, said((32105, 64106, 128105))) == 40033
    assert cost_of(RV32, said((10024, 20022, 40022))) == 40022
    assert cost_of(RVSIM, said((10060, 20045, 40039))) == 40039


@pytest.mark.parametrize(
    ("board", "counts", "text"),
    [
        (M4, (0, 0, 0), "does not count: .*0, 0, 0 ticks; check counter.register and counter.setup"),
        (M4, (2**32 - 32000, 2**32 - 64000, 2**32 - 128000), "runs backwards.*counter.down"),
        (M4, (7, 7, 7), "does not grow.*7, 7, 7"),
        (M4, (32000, 64000, 128000 - 65536), "does not grow.*counter.bits"),
        (RV32, (2**64 - 5, 2**64 - 10, 2**64 - 20), "runs backwards"),
        (RV32, (80000, 160000, 320000), r"minstret counts 16 instructions per pass.*counter.scale \(0.125 .*-icount of run.command, which is shift=0"),
        (RVSIM, (1000000, 2000000, 4000000), "counts 200 cycles per pass"),
        (replace(M4, counter=replace(M4.counter, hertz=1e6)), (32105, 64106, 128105), r"hertz and step imply 0.256.*counter.hertz \(2.5e\+07"),
        (replace(M4, run=replace(M4.run, step=0.0)), (32105, 64106, 128105), r"ticks 6.4 times per pass.*run.step, which is missing: 1.28e-07 would be"),
    ],
)
def test_counters_that_are_wrong(board: Board, counts: Sequence[int], text: str) -> None:
    with pytest.raises(DeviceError, match=text) as error:
        cost_of(board, said(counts))
    assert board.name in str(error.value) and "\n" not in str(error.value)


def test_any_counts_are_judged() -> None:
    for counts in ((0, 0, 1), (1, 0, 0), (0, 10**18, 5), (2**63, 0, 2**63), (5000, 10000, 20000)):
        with pytest.raises(DeviceError):
            cost_of(M4, said(counts))


def test_an_early_watchdog_a_trap_and_an_end_that_is_none() -> None:
    with pytest.raises(DeviceError, match="the watchdog fired while .*watchdog.hertz"):
        cost_of(M4, said((32105,)))
    with pytest.raises(DeviceError, match="check watchdog.registers, watchdog.hertz"):
        cost_of(M4, said(()))
    with pytest.raises(DeviceError, match=r"trap: nothing is there, address 0x40004010, at pc 0x1; check console.setup \(the write to 0x40004010\)"):
        cost_of(M4, BoardAnswer('{"failure": ["trap", "nothing is there, address 0x40004010, at pc 0x1"]}'))
    with pytest.raises(DeviceError, match="still running after 10 s; check console.end"):
        cost_of(M4, said((32105, 64106, 128105)), ended=False)


@pytest.mark.parametrize(
    ("status", "output", "complaint", "text"),
    [
        (None, "", "", r"printed nothing: qemu-system-arm did not end in 10 s; check console.data.*memories"),
        (-6, "", "fatal: Lockup\nR00=1\n", r"ended with status -6 and complained: fatal: Lockup; check .*memories, watchdog.registers, run.boot"),
        (None, '{"counted": true}\n', "", r"its watchdog \(cmsdk\) did not end it"),
        (-6, "", "Timer with period zero\nqemu: fatal: Lockup\nR00=1\n", r"complained: qemu: fatal: Lockup; check start and size of memories"),
        (1, "", "qemu-system-arm: unsupported machine type\n", r"was not started: .*unsupported machine type; check run.command \("),
        (0, "{{cc", "", r"incomplete answer, '{{cc'"),
    ],
)
def test_runs_without_an_answer(status: int | None, output: str, complaint: str, text: str) -> None:
    assert re.search(text, str(silence(M4, status, output, complaint)))


def test_a_simulator_that_goes_on_is_the_fault_of_its_end_where_there_is_no_watchdog() -> None:
    assert "check console.end and run.command" in str(silence(replace(M4, watchdog=Watchdog()), None, smoke.COUNTED, ""))


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("name", ["lm3s6965evb", "mps2-an505", "riscv32-spike", "sifive_u"])
def test_boards_from_outside_the_package_count(name: str, tmp_path: Path) -> None:
    """A core whose own timer counts, memory behind TrustZone's controllers, a simulator that is told through two words, and a hart without floats beside
    another one, at addresses from 2 GiB on."""
    path = Path(__file__).parents[2] / "targets" / "boards" / f"{name}.toml"
    assert len(list(filter(None, path.read_text().splitlines()))) <= 40
    made = parse_target(f"micro -board={path}").toolchain().build([PLAIN], IMAGE, tmp_path / "plain", timeout=120)
    assert made.said.ok, made.said.text
    board = find_board(str(path))
    assert abs(SimulatorDevice(board.run.device, board).check(made.artifacts[0]) - 40000) < 50
    (state,) = tune_tasks([SearchTask("matmul", (8, 8, 8), f"micro -board={path}")], trials=3, progress=False)
    assert state.best is not None and state.trials == 3 and not state.failures


def broken(tmp_path: Path, name: str, before: str, after: str) -> tuple[SimulatorDevice, Artifact]:
    """A device of a shipped board whose file was changed, and a program for it."""
    text = (FOLDER / f"{name}.toml").read_text()
    assert before in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(before, after, 1))
    made = parse_target(f"micro -board={path}").toolchain().build([PLAIN], IMAGE, tmp_path / "plain", timeout=120)
    assert made.said.ok, made.said.text
    board = find_board(str(path))
    return SimulatorDevice(board.run.device, board), made.artifacts[0]


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("mps2-an386", "    [0x4000_0000, 1],\n", "", "does not count.*counter.setup"),
        ("mps2-an386", "scale = 0.3125", "scale = 1.0", r"6.4 instructions per pass.*0.3125 would be right"),
        ("mps2-an386", "start = 0x2000_0000", "start = 0x3000_0000", "qemu-system-arm has no memory at 0x30000000; it has .*; check start of the memory 'ram'"),
        ("mps2-an386", "ready = 0\n", "ready = 1\n", "printed nothing: .*console.ready"),
        ("qemu-riscv32", '"-icount", "shift=0",', "", "run.command, which lacks -icount|printed nothing"),
    ],
)
def test_a_broken_file_is_refused(name: str, before: str, after: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "SECONDS", 3.0)
    device, program = broken(tmp_path, name, before, after)
    with pytest.raises(DeviceError, match=text):
        device.check(program)


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_a_good_board_starts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "_believed", {})
    device, program = broken(tmp_path, "spike-rv32", "about", "about")
    first = device.check(program)
    monkeypatch.setattr(smoke, "cost_of", None)
    assert abs(first - 40_000) < 100 and device.check(program) == first
    device.close()
