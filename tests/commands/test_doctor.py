"""What `ansor doctor` says of a busy machine."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from ansor.cli import main
from ansor.commands import targets as commands
from ansor.errors import DeviceError
from ansor.measure import device_kinds
from ansor.measure.device import Device
from ansor.measure.turns import Say
from ansor.support.settings import cores
from ansor.targets import cpu
from ansor.targets.base import CodeGenerator, Kind, Target, register_kind


@pytest.mark.compiler
@pytest.mark.parametrize("load, busy", [(0.0, False), (1.0 + cores(), True)])
def test_a_peak_measured_beside_other_work_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], load: float, busy: bool) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    assert main(["doctor", "--threads", "1"]) == 0
    peak = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("peak"))
    assert ("was measured while the machine was busy" in peak) is busy


def test_more_threads_than_cores_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--threads", str(64 * cores())]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and f"give -threads={cores()} or fewer" in said.err and "peak" not in said.out


def test_a_device_that_does_not_open_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(text: str, target: Target, say: Say) -> Device:
        raise DeviceError("nothing listens there; switch the board on")

    monkeypatch.setattr(device_kinds, "device_kinds", lambda: (device_kinds.DeviceKind("deaf-board", "a board", refuse),))
    toolchain = SimpleNamespace(version="mine 1.0", forms=lambda: ())
    codegen = CodeGenerator(toolchain=lambda target: toolchain)
    kind = Kind("deaf", lambda mcpu: replace(cpu.default("native"), kind="deaf"), cpu.OPTIONS, device="deaf-board:1", codegen=codegen)
    register_kind(kind)
    assert main(["doctor", "--target", "deaf"]) == 1
    assert "device     deaf-board:1 (a board): nothing listens there; switch the board on\n" in capsys.readouterr().out


def test_no_device_is_not_the_usual_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "matmul", "--args", "8,8,8", "--trials", "1", "--devices", ",", "--records", str(tmp_path / "none.jsonl")]) == 1
    assert "asked to measure on no device: name one" in capsys.readouterr().err


@pytest.mark.compiler
def test_boards_are_described_as_boards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", "micro -board=nrf52840dk"]) == 1, "nothing listens there"
    said = capsys.readouterr().out
    assert "ram 256 KiB, flash 1,024 KiB (flash); code in ram; counts cycles (nRF52840)\n" in said and "toolchain  zig cc" in said
    assert re.search(r"^device     gdb://localhost:3333 .*nothing answers at localhost:3333", said, re.MULTILINE)


NO_FILE = "asked for the board of /tmp/none.toml, but there is no such file; give"


@pytest.mark.parametrize(("board", "said"), [("/tmp/none.toml", NO_FILE), ("nosuch", "the boards are esp32c3")])
def test_boards_that_are_not_there_are_told_in_one_sentence(board: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", f"micro -board={board}"]) == 1
    heard = capsys.readouterr()
    assert said in heard.err and len(heard.err.splitlines()) == 1 and not heard.out.startswith("Traceback")


def test_options_of_a_kind_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "micro"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^-code +the memory that code is in: ram or flash, or its name +code", said, re.MULTILINE) and "'micro -board=mps2-an386'" in said
    assert main(["targets", "macro"]) == 1 and "the kinds are arm" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["targets"], ["targets", "micro"], ["devices"]])
def test_tables_fit_a_terminal(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(commands, "make_console", lambda: Console(width=80, highlight=False))
    assert main(arguments) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(("a target is", "`ansor doctor", "the default target"))]
    assert rows and max(map(len, rows)) <= 80


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [("/dev/ttyACM0", "serial", ""), ("serial:///dev/ttyACM0?baud=115200", "serial", ""), ("process:", "", "a test wire without a board")],
)
def test_lines_are_devices_by_their_paths(text: str, kind: str, said: str) -> None:
    if kind:
        assert device_kinds.find_kind(text).name == kind
    else:
        with pytest.raises(DeviceError, match=said):
            device_kinds.find_kind(text)
