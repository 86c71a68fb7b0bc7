"""What `ansor bench` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from rich.console import Console

import ansor
from ansor.cli import main
from ansor.commands.bench_text import NAME_WIDTH, SHOWN, Bench, Side, show
from ansor.commands.group_times import GroupTime, group_times
from ansor.graph.step_seconds import CallSeconds
from ansor.measure.interleaved import Ratio
from ansor.measure.peak import Peak
from ansor.networks import runtimes
from ansor.networks.runtimes import RUNTIMES, ModelCall, made_ready
from ansor.run.states import TaskState

NETWORK = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()

def example_inputs():
    return (torch.ones(4, 16),)
"""
PEAK = Peak(100.0, 10.0, 1)


def made_up(groups: int = 3, peak: Peak | None = PEAK) -> Bench:
    ours, theirs = Side("ours", 1e-3, Ratio(1.0, 1.0, 1.0)), Side("eager", 2.5e-3, Ratio(2.5, 2.25, 2.75))
    others = [Side("inductor", None, None, "does not run it: RuntimeError: no"), Side("onnxruntime", None, None, "not installed")]
    found = [GroupTime(f"conv2d_3x3_64_64_56x56_bias_add_relu_{number}", 12, 1e-3, 1e7, 5e-4) for number in range(groups - 1)]
    return Bench("net", "cpu", 1, 0, 1e-6, peak, [ours, theirs, *others], [*found, GroupTime("torch aten.cummax", 1, 1e-4)])


def lines_of(bench: Bench) -> list[str]:
    console = Console(width=80, highlight=False)
    with console.capture() as said:
        show(bench, console)
    return said.get().splitlines()


def test_it_fits_into_80_columns() -> None:
    lines = lines_of(made_up(SHOWN + 5))
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("conv2d"))
    assert row[NAME_WIDTH - 1] == "…" and row[NAME_WIDTH:].split() == ["12", "1", "ms", "6.2", "%", "10", "50", "%"]
    assert any(line.startswith("5 more groups") for line in lines)


def test_who_does_not_run_is_named() -> None:
    lines = lines_of(made_up())
    assert "PyTorch eager  2.5 ms  2.50 x as fast  2.25 .. 2.75" in lines
    assert "PyTorch Inductor: does not run it: RuntimeError: no" in lines and "ONNX Runtime: not installed" in lines


def test_shares_are_of_the_sum_of_the_steps() -> None:
    assert "timed within such calls; shares are of the sum, 2.1 ms" in lines_of(made_up())


def test_the_limit_counts_groups_without_one_as_they_are() -> None:
    assert made_up().limit == pytest.approx(2 * 5e-4 + 1e-4)
    assert made_up(peak=None).limit is None
    assert lines_of(made_up(peak=None))[-1] == "the peak of this machine cannot be measured, so no limit is known"


@pytest.mark.compiler
def test_groups_have_the_roof_of_their_operations_and_bytes() -> None:
    states: list[TaskState] = []
    network = ansor.compile(torch.nn.Linear(64, 32).eval(), (torch.ones(16, 64),), "cpu -threads=1", library=False, progress=False, on_tasks=states.extend)
    ((name, _),) = network.steps
    flop, moved = states[0].task.flop, 4 * (16 * 64 + 64 * 32 + 32 + 16 * 32)
    slow_memory, rest = group_times([name], CallSeconds([1e-3], 2e-4), states, Peak(1e6, 1e-3, 1))
    assert (rest.name, rest.seconds, rest.limit) == ("inputs and results", 2e-4, None)
    assert slow_memory.limit == pytest.approx(moved / 1e6) and slow_memory.rate == pytest.approx(flop / 1e6)
    found = group_times([name, "torch aten.cummax", name], CallSeconds([1e-3, 5e-3, 1e-3], 1e-4), states, Peak(1e-3, 1e6, 1))
    assert [(one.name, one.uses) for one in found] == [("torch aten.cummax", 1), (name, 2), ("inputs and results", 1)]
    assert found[0].limit is None and found[1].limit == pytest.approx(2 * flop / 1e6)


@pytest.mark.compiler
def test_the_roof_is_that_of_the_algorithm_with_fewest_operations() -> None:
    (task,) = ansor.extract_tasks(torch.nn.Conv2d(16, 16, 3, padding=1).eval(), (torch.zeros(1, 16, 16, 16),), "cpu -threads=1").tasks
    found = group_times([task.name], CallSeconds([1.0], 0.0), [TaskState(task)], Peak(1e-9, 1e9, 1))[0]
    assert found.limit is not None and found.limit < task.flop == found.flop


def test_what_is_not_installed_or_does_not_run_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ModelCall(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    monkeypatch.setattr(runtimes, "find_spec", lambda package: None)
    assert made_ready("onnxruntime", call) == "not installed (pip install onnxruntime onnx)"
    monkeypatch.setattr(runtimes, "RUNTIMES", {"eager": lambda call: 1 / 0})
    assert made_ready("eager", call) == "does not run it: ZeroDivisionError: division by zero"


def test_arguments_reach_an_onnx_session_by_name_and_order() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")

    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
            return x.reshape(-1)[:3] * scale

    ready = made_ready("onnxruntime", ModelCall(Weighted(), (torch.ones(2, 3),), {"scale": torch.ones(3)}))
    assert not isinstance(ready, str), ready


@pytest.mark.compiler
def test_a_network_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ansor.commands.bench.RUNTIMES", {"eager": RUNTIMES["eager"]})
    monkeypatch.setattr("ansor.commands.bench.WARM", 0.0)
    monkeypatch.setattr("ansor.commands.bench.machine_peak", lambda target: PEAK)
    assert main(["bench", "net.py", "--threads", "1", "--turns", "1", "--no-library", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["sides"]] == ["ours", "eager"] and all(one["seconds"] > 0 for one in found["sides"])
    assert found["error"] < 1e-5 and found["trials"] == 0 and found["limit"] > 0
    assert sum(one["uses"] for one in found["groups"] if one["name"] != "inputs and results") == 2 and not list(tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize(("subject", "sentence"), [("matmul", "which is an operator; name a network"), ("model.pt2", "an int8 network")])
def test_what_is_no_network_is_refused(subject: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", subject]) == 1
    assert sentence in capsys.readouterr().err


def test_records_that_are_not_there_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "net.py", "--records", "missing.jsonl"]) == 1
    assert "asked to bench with the records in missing.jsonl, which does not exist; tune first" in capsys.readouterr().err


def test_sizes_are_of_operators(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "matmul", "--args", "64,64,64"])
    assert "--args 64,64,64; bench times networks, for an operator use `ansor tune` and `ansor explain`" in capsys.readouterr().err
