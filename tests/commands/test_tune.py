"""What is asked of tuning, and the comparison with PyTorch after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansor.cli import main
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


def test_an_early_stop_reaches_the_search_of_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, object] = {}

    def compiled(*_: object, **keywords: object) -> None:
        asked.update(keywords)
        raise Terminated

    monkeypatch.setattr("ansor.api.compile", compiled)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("import torch\nmodel = torch.nn.ReLU()\ndef example_inputs(): return (torch.ones(4),)\n")
    assert main(["tune", "net.py", "--threads", "1", "--early-stop", "7"]) == 128 + 15
    assert asked["early_stop"] == 7
