"""A second process finds what `torch.compile(backend="ansor")` made in the first: no export, no search, no comparison; and never another network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ansor.networks import kept_networks, library_choice

pytestmark = [
    pytest.mark.compiler, pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]  # fmt: skip

PROGRAM = """
import sys, torch
from ansor import torch_backend
from ansor.networks import compiling, kept_networks, library_choice
before, found = kept_networks.found, []
kept_networks.found = lambda *words: found.append(before(*words)) or found[-1]
if sys.argv[1] == "again":
    torch.export.export = torch_backend.extract = torch_backend.compile_sharing = compiling.chosen = compiling.built = library_choice._compared = None
torch.manual_seed(0)
module = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 32)).eval()
network = torch.compile(module, backend="ansor", options={"threads": 1})
with torch.no_grad():
    values = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)
print(len([one for one in found if one is not None and one.network is not None]), "of", len(found))
"""


@pytest.fixture
def cache(own_cache: Path) -> Path:
    torch.compiler.reset()
    return own_cache


def run(word: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, word], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_process_reads_searches_and_compares_nothing(cache: Path) -> None:
    assert run("first") == "0 of 1\n"
    assert run("again") == "1 of 1\n"


def results_of(module: torch.nn.Module, values: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a network was found that was kept; its results are compared with PyTorch's."""
    found: list[bool] = []
    before = kept_networks.found

    def spy(*words: Any) -> Any:
        kept = before(*words)
        found.append(kept is not None)
        return kept

    torch.compiler.reset()
    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(kept_networks, "found", spy)
        network = torch.compile(module, backend="ansor", options={"threads": 1, "library": False})
        torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)
    return all(found) and bool(found)


def test_other_weights_and_shapes_are_other_networks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    module, values = torch.nn.Linear(48, 48).requires_grad_(False), torch.randn(2, 48)
    assert not results_of(module, values, monkeypatch)
    assert results_of(module, values + 1, monkeypatch)
    assert not results_of(module, torch.randn(3, 48), monkeypatch)
    module.weight[7, 7] += 1
    assert not results_of(module, values, monkeypatch)
    assert results_of(module, values, monkeypatch)


class Writes(torch.nn.Module):
    """What PyTorch has to run."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values.view(-1)


def test_what_is_pytorchs_stays_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(2, 3)
    assert not results_of(Writes(), values, monkeypatch)
    assert results_of(Writes(), values, monkeypatch)


def test_damage_costs_a_compilation_and_nothing_else(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, values = torch.nn.Linear(8, 8), torch.randn(2, 8)
    assert not results_of(module, values, monkeypatch)
    for path in (cache / kept_networks.PART).glob("*-*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert not results_of(module, values, monkeypatch)
    assert results_of(module, values, monkeypatch)


def test_what_pytorch_runs_in_part_is_kept_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sorted(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.linalg.inv(values.double() + 3 * torch.eye(4)), values * 2

    values = torch.rand(4, 4)
    assert not results_of(Sorted(), values, monkeypatch)
    assert results_of(Sorted(), values, monkeypatch)


def test_comparisons_with_pytorch_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ansor

    module, values = torch.nn.Linear(8, 8).eval(), torch.randn(2, 8)
    ansor.compile(module, values, "cpu -threads=1", progress=False, on_tasks=lambda states: None)
    monkeypatch.setattr(library_choice, "_compared", None)
    network = ansor.compile(module, values, "cpu -threads=1", progress=False, on_tasks=lambda states: None)
    torch.testing.assert_close(network(values), module(values).detach(), rtol=1e-4, atol=1e-5)
