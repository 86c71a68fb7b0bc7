"""`ansor doctor` for a board: a program is built, run and counted."""

from __future__ import annotations

import pytest

from ansor.cli import main
from ansor.commands import board_check
from ansor.commands.board_check import check_board
from ansor.errors import DeviceError, ToolchainError
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.targets.base import parse_target

BOARD = "micro -board=rvsim-inorder"

pytestmark = pytest.mark.compiler


def test_a_board_runs_a_program_and_counts_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", BOARD]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "passes ran on the board and counted" in said and "cycles" in said


def test_a_board_that_differs_from_its_file_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*_: object) -> int:
        raise DeviceError("its counter stands still")

    monkeypatch.setattr(SimulatorDevice, "check", differs)
    found = check_board(parse_target(BOARD))
    assert found is not None and found.text.startswith("its counter stands still") and "docs/boards.md" in found.fix


def test_a_compiler_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target(BOARD)
    monkeypatch.setattr(board_check, "FIRST_CALL_SECONDS", 1e-6)
    with pytest.raises(ToolchainError, match="no program can be built for micro -board=rvsim-inorder"):
        check_board(target)


def test_what_is_not_a_board_is_not_checked() -> None:
    assert check_board(parse_target("cpu -threads=1")) is None
