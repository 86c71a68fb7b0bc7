"""`benchmarks/networks.py` goes on after a network whose process fails, and says which have no result."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import networks
import pytest
from network_results import Result, Settings, load

from ansor.measure.interleaved import Ratio

pytestmark = pytest.mark.torch


def run(monkeypatch: pytest.MonkeyPatch, path: Path, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["networks.py", *words, "--results", str(path)])
    return networks.main()


def in_place_of_processes(monkeypatch: pytest.MonkeyPatch, broken: tuple[str, str]) -> None:
    """As if each had run, but for one."""

    def child(name: str, given: object, what: str) -> object:
        if (name, what) == broken:
            raise RuntimeError(f"{name}: the process ended with status 1")
        one = Ratio(1.5, 1.4, 1.6)
        settings: Settings = networks.settings_of(given)  # type: ignore[arg-type]  # its own arguments
        seconds = {"ours": 1.0, "eager": 2.0, "onnxruntime": 1.5}
        return 0.5 if what == "again" else asdict(Result(name, settings, seconds, {"eager": one, "onnxruntime": one}, 0.0, 1.0, 1.0, 0, (2.0,), 1.2))

    monkeypatch.setattr(networks, "child", child)


@pytest.mark.parametrize("what", ["run", "again"])
def test_others_run_and_the_failed_one_is_named(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results" / "networks.jsonl"
    in_place_of_processes(monkeypatch, ("bert", what))
    assert run(monkeypatch, path, "resnet18", "bert", "gpt2") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "bert: the process ended with status 1" in shown and "without a result, because their processes failed: bert" in shown
    assert [(one.name, one.ready) for one in load(path)] == [("resnet18", (2.0, 0.5)), ("gpt2", (2.0, 0.5))]


def test_all_that_failed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_place_of_processes(monkeypatch, ("bert", "run"))
    assert run(monkeypatch, tmp_path / "none.jsonl", "bert") == 1
    shown = capsys.readouterr().out
    assert "failed: bert" in shown and "--table" not in shown


def test_a_table_of_nothing_says_so_also_for_models_of_other_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    assert run(monkeypatch, tmp_path / "none.jsonl", "timm:any", "--table") == 1
    assert "run without --table" in " ".join(capsys.readouterr().out.split())
