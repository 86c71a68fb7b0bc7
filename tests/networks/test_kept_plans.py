"""A second process chooses, writes and compares no kernel of a network that was compiled before; and never takes the plan of another one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ansor
from ansor.errors import AnsorWarning
from ansor.graph.network import CompiledNetwork
from ansor.networks import compiling, kept_plans, library_choice
from ansor.networks.network_kernel import NetworkKernel
from ansor.run import kept_picks
from ansor.support import kept_data
from ansor.support.settings import environment_with
from tests.networks.caches import with_compilers

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ONE = "cpu -threads=1"

PROGRAM = """
import sys, torch, ansor
from ansor.networks import compiling
if sys.argv[1] == "again":
    compiling._chosen = None
torch.manual_seed(int(sys.argv[2]))
module = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 32)).eval()
lines = []
network = ansor.compile(module, torch.randn(2, 3, 8, 8), "cpu -threads=1", report=lines.append)
with torch.no_grad():
    values = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)
print(*lines, sep="\\n")
print([(kernel.kernel.schedule, kernel.kernel.origin, kernel.kernel.name, kernel.kernel.code) for kernel in network.kernels if hasattr(kernel, "kernel")])
"""


@pytest.fixture
def cache(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_picks, "ENABLED", True)
    return own_cache


def start(folder: Path, word: str, seed: int = 0) -> subprocess.Popen[str]:
    """A process with that cache folder."""
    command, environment = [sys.executable, "-W", "ignore", "-c", PROGRAM, word, str(seed)], environment_with({"ANSOR_CACHE": str(folder)})
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate()
    assert process.returncode == 0, error
    return out


@dataclass(frozen=True)
class Begun:
    """A cache folder that was empty when two processes began at once to compile the same network, and what these said."""

    folder: Path
    first: str
    second: str


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    folder = with_compilers(tmp_path_factory.mktemp("begun"))
    both = [start(folder, "first"), start(folder, "first")]
    return Begun(folder, *map(said, both))


def test_two_processes_at_once_do_each_other_no_harm(begun: Begun) -> None:
    assert begun.first == begun.second
    assert "programs were picked by the model without measuring" in begun.first


def test_a_later_process_chooses_nothing_and_has_the_same_network(begun: Begun) -> None:
    assert said(start(begun.folder, "again")) == begun.first


def test_kept_kernels_know_their_processor_and_the_range_of_indices(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def facts() -> list[tuple[str, tuple[tuple[str, float, float], ...]]]:
        network = ansor.compile(nn.Embedding(9, 4), (torch.tensor([[1, 8]]),), "cpu -mcpu=x86-64-v2 -threads=1")
        return [(one.kernel.mcpu, one.kernel.ranges) for one in network.kernels if isinstance(one, NetworkKernel)]

    first = facts()
    monkeypatch.setattr(compiling, "_chosen", None)  # the second time nothing may be chosen
    assert facts() == first
    assert [(mcpu, [high for _, _, high in ranges]) for mcpu, ranges in first] == [("x86-64-v2", [9])]


def test_weights_are_those_of_the_model_at_hand(begun: Begun) -> None:
    assert said(start(begun.folder, "again", seed=1)) == begun.first


class Compiled:
    """Compiles and compares with PyTorch; knows what was chosen anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.anew = 0
        before = compiling._chosen

        def spy(*given: object, **named: object) -> object:
            self.anew += 1
            return before(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(compiling, "_chosen", spy)

    def __call__(self, model: Callable[[Tensor], Tensor], values: Tensor, target: str = ONE, **options: object) -> bool:
        """Whether a plan was found."""
        before = self.anew
        network = ansor.compile(model, values, target, **{"library": False, "progress": False, **options})  # type: ignore[arg-type]
        with torch.no_grad():
            torch.testing.assert_close(network(values), model(values), rtol=1e-4, atol=1e-5)
        return self.anew == before


@pytest.fixture
def compiled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    torch.manual_seed(0)
    return Compiled(monkeypatch)


def test_only_the_same_graph_has_the_plan(compiled: Compiled) -> None:
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    assert compiled(module, values + 1)
    nn.init.ones_(module.weight)
    assert compiled(module, values)
    assert not compiled(module, torch.randn(3, 8))
    assert not compiled(nn.Linear(8, 9).eval(), values)
    assert not compiled(nn.Linear(8, 8, bias=False).eval(), values)
    assert not compiled(nn.Sequential(module, nn.ReLU()), values)
    assert not compiled(lambda x: x * 2, values)
    assert not compiled(lambda x: x * 3, values)
    assert compiled(lambda x: x * 2, values)


def test_only_the_same_options_have_the_plan(compiled: Compiled) -> None:
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    for options in ({"seed": 1}, {"trials": 0}, {"library": True}):
        assert not compiled(module, values, **options) and compiled(module, values, **options), options
    assert not compiled(module, values, "cpu -threads=2") and not compiled(module, values, "cpu -threads=1 -l2=64K")
    assert compiled(module, values)


def test_what_is_measured_recorded_or_looked_at_has_no_plan(compiled: Compiled, tmp_path: Path) -> None:
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    records = tmp_path / "records.jsonl"
    seen: list[object] = []
    for _ in range(2):
        assert not compiled(module, values, trials=1, records=records)
        assert not compiled(module, values, records=records)
        assert not compiled(module, values, on_tasks=seen.extend)
    assert len(seen) == 2


def test_another_state_of_the_package_or_model_has_no_plan(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    for name in ("package_state", "model_mark"):
        with monkeypatch.context() as patch:
            patch.setattr(kept_plans, name, lambda *_: "another")
            assert not compiled(module, values)
    assert compiled(module, values)


def test_damage_costs_a_choice_and_nothing_else(compiled: Compiled, cache: Path) -> None:
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    (plan,) = (cache / kept_plans.PART).glob("*-*")
    content = plan.read_bytes()
    plan.write_bytes(content[:-1])
    assert not compiled(module, values)
    for other in (b"[]", b"{}", json.dumps({"kernels": [], "lines": []}).encode(), json.dumps({"kernels": [{}], "lines": []}).encode()):
        kept_data.write(kept_plans.PART, plan.name.partition("-")[0], other, kept_plans.MOST_BYTES)
        assert not compiled(module, values)
        assert compiled(module, values)


def test_a_library_that_is_gone_is_built_again(compiled: Compiled, cache: Path, tmp_path: Path) -> None:
    (cache / "kernels").unlink()
    module, values = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    assert not compiled(module, values)
    for path in (cache / "kernels").iterdir():
        path.unlink()
    assert not compiled(module, values)
    assert compiled(module, values)


def test_pytorchs_kernels_are_part_of_a_plan(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_pytorch(candidates: library_choice.Candidates) -> tuple[CompiledNetwork, list[bool], list[object]]:
        taken = [True] * len(candidates.tasks)
        return candidates.network(taken), taken, [None]

    monkeypatch.setattr(library_choice, "_compared", all_of_pytorch)
    module, values, lines = nn.Linear(8, 8).eval(), torch.randn(2, 8), list[str]()
    ansor.compile(module, values, ONE, report=lines.append)
    monkeypatch.setattr(compiling, "_chosen", None)
    again = list[str]()
    network = ansor.compile(module, values, ONE, report=again.append)
    assert not any(isinstance(kernel, NetworkKernel) for kernel in network.kernels)
    assert again == lines and "run PyTorch's own kernels" in lines[-1]
    torch.testing.assert_close(network(values), module(values).detach(), rtol=1e-4, atol=1e-5)


def test_a_comparison_that_failed_is_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(library_choice, "_measured", fails)
    for _ in range(2):
        with pytest.warns(AnsorWarning, match="were not compared"):
            ansor.compile(nn.Linear(8, 8).eval(), torch.randn(2, 8), ONE, progress=False)
