"""`ansor doctor --learn`: what it prints, keeps and refuses; nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ansor.cli import main
from ansor.commands import learn as command
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import pretrained
from ansor.dataset import learn
from ansor.dataset.evaluate import Quality
from ansor.dataset.examples import Examples
from ansor.dataset.learn import Tried
from ansor.dataset.operators import dataset_tasks
from ansor.ir.feature_rows import FeatureRows
from ansor.run import machine_model as kept
from ansor.targets.base import parse_target

pytestmark = pytest.mark.compiler
TARGET = parse_target("cpu -threads=1")
PACKAGE, ESTIMATE = Quality(5, 0.1, 0.8812, 0.85, 0.9401), Quality(5, 0.1, 0.852, 0.8144, 0.9)
BETTER, WORSE = Quality(5, 0.1, 0.9049, 0.8996, 0.95), Quality(5, 0.1, 0.88, 0.9, 0.95)

TABLE = """\
5 tasks held out
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━┓
┃ scores by           ┃ pairs in order ┃ peak@1 ┃ peak@5 ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━┩
│ the package's model │         88.1 % │  0.850 │  0.940 │
│ the model in use    │         88.0 % │  0.900 │  0.950 │
│ the new model       │         90.5 % │  0.900 │  0.950 │
│ the estimate alone  │         85.2 % │  0.814 │  0.900 │
└─────────────────────┴────────────────┴────────┴────────┘"""


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    Console(width=80, highlight=False).print(command.table_of(Tried(PACKAGE, BETTER, ESTIMATE, WORSE)))
    assert "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()) == TABLE


class Learning:
    """In place of measuring and training: what was found, and for how long was measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fitted, self.held_out, self.seconds = BETTER, 5, 0.0
        nothing = Examples(dataset_tasks()[0], FeatureRows(pretrained().networks[0].layers.inputs.mean[None], np.zeros(1, np.int64), 1), np.ones(1))
        monkeypatch.setattr(learn, "measure", self.measure)
        monkeypatch.setattr(learn, "examples", lambda tasks, target, folder: ([nothing] * 20, [nothing] * self.held_out))
        monkeypatch.setattr(learn, "fit", lambda learned: pretrained().networks)
        monkeypatch.setattr(learn, "tried", self.tried)

    def measure(self, tasks: object, target: object, folder: Path, seconds: float, done: object) -> None:
        self.seconds = seconds

    def tried(self, networks: Sequence[Network], held_out: Sequence[Examples], before: NetworkModel | None) -> Tried:
        return Tried(PACKAGE, self.fitted, ESTIMATE, None if before is None else WORSE)


@pytest.fixture
def learning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Learning:
    monkeypatch.setattr(kept, "FOLDER", tmp_path.name)
    return Learning(monkeypatch)


def run(*words: str) -> int:
    return main(["doctor", "--threads", "1", "--learn", *words])


def test_what_is_better_is_kept_until_it_is_removed(learning: Learning, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("2.5") == 0 and learning.seconds == 150.0
    said = capsys.readouterr().out
    assert "for cpu -mcpu=native -threads=1 in turn, for 2.5 min; records in" in said and "training on 20 programs of 20 tasks" in said
    assert "kept: it chooses programs for cpu -mcpu=native -threads=1 on this machine from now on" in said and "the model in use" not in said
    found = kept.machine_model(TARGET)
    assert found is not None and found.about["programs"] == 20 and found.about["threads"] == 1
    assert run("1") == 0 and "│ the model in use    │" in capsys.readouterr().out
    assert main(["doctor", "--threads", "1"]) == 0
    assert f"cost model networks fitted to this machine ({found.digest}), with 20 programs" in capsys.readouterr().out
    assert run("0") == 0 and "removed the model of this machine for cpu" in capsys.readouterr().out
    assert kept.machine_model(TARGET) is None
    assert run("0") == 0 and "there is no model of this machine for cpu" in capsys.readouterr().out


def test_what_is_not_better_is_not_kept(learning: Learning, capsys: pytest.CaptureFixture[str]) -> None:
    learning.fitted = WORSE
    assert run("1") == 0 and kept.machine_model(TARGET) is None
    assert "not kept, because it is no better on the held-out tasks: the package's model stays in use; run the command again" in capsys.readouterr().out


def test_too_little_time_says_how_to_go_on(learning: Learning, capsys: pytest.CaptureFixture[str]) -> None:
    learning.held_out = 1
    assert run("0.1") == 1 and kept.machine_model(TARGET) is None
    said = capsys.readouterr().err
    assert "20 training tasks and 1 held-out tasks have measured programs, but at least 1 and 4 are needed; run the same command to continue" in said


@pytest.mark.parametrize("minutes", ["-3", "soon", "nan", "inf", ""])
def test_what_are_no_minutes_is_refused(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(minutes)
    assert f"argument --learn: {minutes!r} is not a number of minutes, such as 5; 0 removes what was learned" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["cpu -mcpu=znver3", "arm", "micro -board=mps2-an386"])
@pytest.mark.parametrize("minutes", ["1", "0"])
def test_other_machines_are_refused(target: str, minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", target, "--learn", minutes]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ansor: asked to fit a cost model to {target.partition(' ')[0]}") and said.count("\n") == 1
