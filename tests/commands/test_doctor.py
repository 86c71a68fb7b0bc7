"""What `ansor doctor` says of a busy machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansor.cli import main
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
