"""What `ansor coverage` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return recorded(tmp_path / "matmul.jsonl", SearchTask(matmul, (16, 16, 16), ONE))


def test_what_is_tuned(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", "matmul", file, "--args", "16,16,16"]) == 0
    said = capsys.readouterr().out
    assert "matmul(16, 16, 16)     1  100.0 %  tuned         3  1 ms" in said and "tuned 1 task, 100.0 % of the estimated time" in said
    assert "picked" not in said and "near" not in said


def test_another_shape_is_near(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", "matmul", file, "--args", "16,16,32"]) == 0
    said = capsys.readouterr().out
    assert "near matmul(16, 16, 32): 3 trials of matmul(16, 16, 16) (another shape)\n" in said
    assert f"`ansor tune matmul --args 16,16,32 --target 'cpu -mcpu=native -threads=1' --records {file}` tunes the tasks with picked programs" in said


def test_another_target_is_near(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", "matmul", file, "--args", "16,16,16", "--threads", "2", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    (near,) = task["near"]
    assert task["program"] == "picked" and task["cost"] is None and task["trials"] == 0
    assert near["trials"] == 3 and near["why"].startswith("made for another target (cpu -mcpu=native -threads=1")


NETWORK = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()

def example_inputs():
    return (torch.ones(4, 16),)
"""
FIRST = """
class First(torch.nn.Module):
    def forward(self, results):
        return results[0]
"""


@pytest.mark.torch
def test_a_network_of_which_one_task_is_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ansor.api import extract_tasks
    from ansor.commands.common import made
    from ansor.commands.subject import NetworkSubject, resolve

    (tmp_path / "net.py").write_text(NETWORK)
    subject = resolve(str(tmp_path / "net.py"))
    assert isinstance(subject, NetworkSubject)
    first, _ = extract_tasks(*made(subject), ONE).tasks
    file = recorded(tmp_path / "net.jsonl", first)
    assert main(["coverage", str(tmp_path / "net.py"), file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    programs = {one["name"]: one for one in found["tasks"]}
    assert {one["program"] for one in programs.values()} == {"tuned", "picked"} and programs[first.name]["cost"] == 1e-3
    assert sum(one["share"] for one in programs.values()) == pytest.approx(1.0) == sum(found["shares"].values())
    assert 0.0 < found["shares"]["picked"] < 1.0 and found["tasks"] == sorted(found["tasks"], key=lambda one: -one["share"])


@pytest.mark.torch
def test_steps_in_pytorch_are_named_and_not_counted(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(NETWORK.replace("torch.nn.ReLU()", "torch.nn.LSTM(32, 32), First()") + FIRST)
    assert main(["coverage", str(tmp_path / "net.py"), file, "--threads", "1"]) == 0
    assert "\nruns in PyTorch: 1 step, not counted\n" in capsys.readouterr().out


def test_a_file_without_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    assert main(["coverage", "matmul", str(tmp_path / "empty.jsonl")]) == 1
    assert "which holds no trials; name a file that `ansor tune` wrote" in capsys.readouterr().err


ELEMENTWISE = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Flatten(0), torch.nn.Softplus(), torch.nn.Unflatten(0, (32, 4)), Turned()).eval()

class Turned(torch.nn.Module):
    def forward(self, x):
        return x.T.contiguous() * 2.0

def example_inputs():
    return (torch.ones(4, 16),)
"""


@pytest.mark.torch
def test_tasks_without_a_reduction_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ansor.api import extract_tasks
    from ansor.commands.common import made
    from ansor.commands.subject import NetworkSubject, resolve

    net = tmp_path / "net.py"
    net.write_text(ELEMENTWISE)
    subject = resolve(str(net))
    assert isinstance(subject, NetworkSubject)
    (dense,) = extract_tasks(*made(subject), ONE).tasks
    file = recorded(tmp_path / "net.jsonl", dense)
    assert main(["coverage", file, str(net), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["program"] for one in found["tasks"]].count("no reduction") == len(found["tasks"]) - 1 > 0
    assert found["shares"]["picked"] == 0.0 < found["shares"]["no reduction"] < 1.0 > found["shares"]["tuned"]


def test_either_order(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["matmul", file], [file, "matmul"]):
        for command in ("coverage", "show", "explain"):
            assert main([command, *words, "--args", "16,16,16"]) == 0
            assert "matmul(16, 16, 16)" in capsys.readouterr().out


def test_a_python_file_is_not_the_records(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = tmp_path / "ops.py"
    declared.write_text("from ansor.zoo.operators import matmul\n\ndef ours():\n    return matmul(16, 16, 16)\n")
    for words in ([str(declared), file], [file, str(declared)], [f"{declared}:ours", file]):
        assert main(["coverage", *words]) == 0
        assert "tuned 1 task" in capsys.readouterr().out


def test_missing_records_are_told_in_either_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["matmul", str(tmp_path / "none.jsonl")], [str(tmp_path / "none.jsonl"), "matmul"]):
        assert main(["coverage", *words]) == 1
        assert "none.jsonl, which is not there" in capsys.readouterr().err
