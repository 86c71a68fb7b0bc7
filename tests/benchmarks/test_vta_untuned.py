"""Layers that nothing was fitted on: all are operators of a core, and the table, for a small one."""

from __future__ import annotations

import pytest

from ansor.ir.dag import Dag
from ansor.targets.base import parse_target
from benchmarks import vta_untuned
from tests.vta_declarations import conv2d

pytestmark = pytest.mark.compiler
SMALL = {"small, 1x1": conv2d((1, 32, 6, 6), 32, 1), "left out": conv2d((1, 16, 4, 4), 16, 1)}


@pytest.mark.parametrize("name", vta_untuned.LAYERS)
def test_layers_are_operators_of_a_core(name: str) -> None:
    assert parse_target("vta").refusal(Dag(vta_untuned.LAYERS[name])) == ""


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(vta_untuned, "LAYERS", SMALL)
    monkeypatch.setattr("sys.argv", ["vta_untuned.py", "small", "--trials", "2"])
    vta_untuned.main()
    said = capsys.readouterr().out
    *_, untuned, tuned, last = said.splitlines()[0].split()
    ratio = float(last)
    assert min(int(untuned), int(tuned)) > 6 * 6 * 2 * 2  # a micro-op each for block by block
    assert 0 < ratio <= 1 and said.startswith("small, 1x1 ") and "left out" not in said and f"minimum {ratio:.3f}, geometric mean {ratio:.3f}, 2 trials" in said


def test_a_name_of_no_layer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["vta_untuned.py", "AlexNet"])
    with pytest.raises(SystemExit):
        vta_untuned.main()
    assert "asked for AlexNet; layers are MobileNet 28" in capsys.readouterr().err
