"""`ansor doctor --learn` from the first program to the last word: what it measures here, fits and says, how it goes on, and how it is taken back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.dataset import learn
from ansor.dataset.operators import dataset_tasks
from ansor.measure.record import load
from ansor.run import machine_model
from ansor.support.settings import cache_part
from ansor.targets.base import parse_target

pytestmark = pytest.mark.compiler

COMMAND = ["doctor", "--threads", "1", "--learn"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Few programs of few operators, and an own cache folder."""
    compilers = cache_part("zig")
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path / "cache"))
    cache_part("zig").rmdir()
    (tmp_path / "cache" / "zig").symlink_to(compilers)  # building the C library takes long
    kinds = [task for task in learn.spread(dataset_tasks()) if "conv" not in task.kind][:8]
    monkeypatch.setattr("ansor.commands.learn.dataset_tasks", lambda: kinds)
    for name, value in (("PASSES", (5,)), ("LEAST_HELD_OUT", 1), ("KEPT_TASKS", 1), ("KEPT_PROGRAMS", 4)):
        monkeypatch.setattr(learn, name, value)


def test_a_machine_is_learned_in_two_runs_and_forgotten(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*COMMAND, "0.0001"]) == 1
    said = capsys.readouterr()
    assert "measuring programs of 8 tasks for cpu" in said.out and "run the same command to continue" in " ".join(said.err.split())
    monkeypatch.setattr(learn, "is_better", lambda one, other: True)
    assert main([*COMMAND, "5"]) == 0
    said = capsys.readouterr()
    text = " ".join(said.out.split())
    assert re.search(r"training on \d+ programs of \d+ tasks?, and on the package model's predictions", text) and "held out" in text and "kept: " in text
    target = parse_target("cpu -threads=1")
    found = machine_model.machine_model(target)
    assert found is not None
    measured = [record for file in (cache_part("learning")).rglob("*.jsonl") for record in load(file).records]
    assert 25 <= len(measured) <= 60
    monkeypatch.setattr(learn, "is_better", lambda one, other: False)
    assert main([*COMMAND, "0.0001"]) == 0
    assert "the model in use stays" in " ".join(capsys.readouterr().out.split())
    for words in ("removed the model of this machine", "there is no model of this machine"):
        assert main([*COMMAND, "0"]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    assert machine_model.machine_model(target) is None
