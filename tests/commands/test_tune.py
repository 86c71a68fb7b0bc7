"""The comparison with PyTorch after tuning."""

from __future__ import annotations

from typing import Any

import pytest

from ansor.commands.common import make_console
from ansor.commands.tune import compare_with_torch
from ansor.support.termination import Terminated
from ansor.targets.base import parse_target


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, Terminated])
def test_ctrl_c_skips_the_comparison(stopped: type[KeyboardInterrupt], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def compare(*_: object) -> None:
        raise stopped

    monkeypatch.setattr("ansor.commands.tune.compare", compare)
    network: Any = None
    asked = "net", (network, None, ()), (), parse_target("cpu -threads=1"), make_console()
    if stopped is Terminated:
        with pytest.raises(Terminated):
            compare_with_torch(*asked)
    else:
        compare_with_torch(*asked)
    said = capsys.readouterr().out
    assert "comparing with PyTorch; Ctrl-C skips that\n" in said and ("stopped by Ctrl-C: not compared with PyTorch" in said) == (stopped is not Terminated)
