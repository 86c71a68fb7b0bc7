"""What `ansor doctor` says of a busy machine."""

from __future__ import annotations

import os

import pytest

from ansor.cli import main
from ansor.support.settings import cores


@pytest.mark.compiler
@pytest.mark.parametrize("load, busy", [(0.0, False), (1.0 + cores(), True)])
def test_a_peak_measured_beside_other_work_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], load: float, busy: bool) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    assert main(["doctor", "--threads", "1"]) == 0
    peak = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("peak"))
    assert ("was measured while the machine was busy" in peak) is busy
