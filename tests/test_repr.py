"""What people print, or see at a prompt, is one useful line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import ansor
from ansor.measure.failure import Failure
from ansor.measure.measurer import Measurement
from ansor.run.budget import Budget
from ansor.run.choosing import recorded_state
from ansor.run.states import Best, BudgetUse, Guess, Progress, RunResults, TaskState
from ansor.targets.base import parse_target
from ansor.tasks.extracted import ExtractedTasks

ONE = "cpu -threads=1"


def _things() -> dict[str, tuple[object, str]]:
    task = ansor.SearchTask("conv2d", (1, 14, 14, 16, 16), ONE)
    space = task.spaces[0]
    best = Best(space.sketch, (0,) * len(space.sizes), 1.5e-5, "the rules")
    progress = Progress(task, Measurement(costs=(1.5e-5,)), BudgetUse(8, 8, 64, 4.0), RunResults(1, 0, 1.5e-5, 1e6), {"crash": 1})
    return {
        "task": (task, "conv2d(1, 14, 14, 16, 16)"),
        "state": (TaskState(task, 3.0, best, trials=64, failures=Counter(crash=2)), "best 15 us, 64 trials, 2 failed, weight 3"),
        "empty state": (TaskState(task), "no valid program yet"),
        "best": (best, "15 us, the rules"),
        "guess": (Guess(best, "chosen by the model", 0.9), "chosen by the model"),
        "progress": (progress, "8 of 64 trials, 15 us, 1 failed"),
        "target": (parse_target(ONE), "Target('cpu -mcpu=native -threads=1')"),
        "budget": (Budget.of(64, 2.0), "trials=64"),
        "space": (space, "Sketch(conv2d"),
        "sketch": (space.sketch, "steps"),
        "dag": (task.dag, "data, weight -> conv2d"),
        "alternatives": (task.alternatives[0], "winograd"),
        "extracted": (ExtractedTasks([task], [2]), "1 task: 2 x conv2d(1, 14, 14, 16, 16)"),
        "failure": (Failure("crash", "signal 11"), "crash"),
    }


@pytest.mark.parametrize("name", _things())
def test_it_is_one_useful_line(name: str) -> None:
    thing, part = _things()[name]
    assert part in repr(thing) and "\n" not in repr(thing) and len(repr(thing)) < 300


@pytest.mark.compiler
def test_kernels_and_records(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    task = ansor.SearchTask("matmul", (4, 5, 6), ONE)
    assert repr(ansor.auto_schedule(task)) == "Kernel(matmul(4, 5, 6): A float32[4, 6], B float32[6, 5] -> C float32[4, 5]; 1 thread)"
    kernel = ansor.auto_schedule(task, trials=2, records=path)
    assert isinstance(kernel, ansor.Kernel) and "; 1 thread, measured " in repr(kernel)
    found = ansor.load_records(path)
    assert repr(found) == "Loaded(2 records of 1 workload)"
    assert all(len(repr(record)) < 300 and "row=" in repr(record) for record in found.records)
    assert "best" in repr(recorded_state(task, path))


@pytest.mark.compiler
@pytest.mark.torch
def test_networks() -> None:
    import torch

    network = ansor.compile(torch.nn.Linear(4, 8).eval(), (torch.ones(2, 4),), ONE, library=False)
    assert isinstance(network, ansor.CompiledNetwork)
    assert repr(network).startswith("CompiledNetwork(float32[2, 4] -> float32[2, 8]; 1 step, 0 of them in PyTorch; ")
