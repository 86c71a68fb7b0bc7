from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import ansor
from ansor.errors import AnsorWarning
from ansor.graph.network import CompiledNetwork
from ansor.graph.row_parts import Stretch, in_parts, stretches
from ansor.graph.tasks import extract
from ansor.networks import kept_networks, row_choice
from ansor.networks.background_tuner import Job, tuned
from ansor.run import kept_picks, picks_together
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.run.states import TaskState
from ansor.targets.base import parse_target

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
TARGET = "cpu -threads=1"


class Chain(torch.nn.Module):
    """Five groups without a product, whose programs are picked quickly; a row of each takes a multiple of 64 bytes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1).flip(1).softmax(2).flip(2).sum(1)


@pytest.fixture(scope="module")
def picks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("picks")


@pytest.fixture(autouse=True)
def picked_once(picks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests share what was picked for the groups of `Chain`, which is not what is looked at here."""
    monkeypatch.setattr(kept_picks, "ENABLED", True)
    monkeypatch.setattr(kept_picks, "cache_part", lambda _: picks)
    monkeypatch.setattr(kept_picks, "cache_folders", lambda _: [picks])
    monkeypatch.setattr(picks_together, "jobs", lambda: 1)  # other processes would pick into another folder


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that parts of each group of `Chain` save, instead of measured ones; the whole takes 10."""
    found = [-1.0, 2.0, 3.0, -1.0, 0.0]
    monkeypatch.setattr(row_choice, "_leaves_cache", lambda *_: True)
    monkeypatch.setattr(row_choice, "_saved", lambda *_: (found, 10.0))
    monkeypatch.setattr("ansor.graph.rivals.faster", lambda *_, **__: True)
    return found


def compiled(model: torch.nn.Module, rows: torch.Tensor, lines: list[str]) -> CompiledNetwork:
    return ansor.compile(model, rows, TARGET, library=False, report=lines.append)


def test_the_stretch_that_saves_most_is_in_parts(saved: list[float], tmp_path: Path) -> None:
    model, rows, lines = Chain(), torch.randn(4, 16, 32), list[str]()
    net = compiled(model, rows, lines)
    assert net.stretch == Stretch(1, 3, 1) and len(net.steps) == 1 + 4 * 2 + 2
    assert "2 of 5 groups are computed for 1 row of the batch at a time, which is faster here" in lines
    with torch.no_grad():
        torch.testing.assert_close(net(rows), model(rows))
    loaded = ansor.load(net.save(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded(rows.numpy()), net(rows.numpy()))


def test_a_stretch_that_saves_little_is_left_whole(saved: list[float]) -> None:
    saved[:] = [0.1, 0.1, 0.0, 0.0, 0.0]
    assert compiled(Chain(), torch.randn(4, 16, 32), []).stretch is None


def test_a_network_that_is_slower_in_parts_is_left_whole(saved: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.graph.rivals.faster", lambda *_, **__: False)
    assert compiled(Chain(), torch.randn(4, 16, 32), []).stretch is None


def test_the_choice_is_kept(saved: list[float], own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, lines = torch.randn(4, 16, 32), list[str]()
    compiled(Chain(), rows, [])
    monkeypatch.setattr(row_choice, "_measured", lambda *_: pytest.fail("measured again"))
    assert compiled(Chain(), rows, lines).stretch == Stretch(1, 3, 1)  # other weights
    assert any("1 row of the batch at a time" in line for line in lines)


def test_a_kept_network_has_its_stretch(saved: list[float], own_cache: Path) -> None:
    rows = torch.randn(4, 16, 32)
    extracted = extract(Chain(), rows)
    net = ansor.compile(extracted, (), TARGET, library=False)
    kept_networks.keep("chain", {}, [], extracted, net, TARGET)
    found = kept_networks.found("chain", TARGET, [])
    assert found is not None and found.network is not None and len(found.network.steps) == len(net.steps) == 11 and found.network.stretch == net.stretch
    assert torch.equal(found.network(rows), net(rows))  # type: ignore[arg-type]


def test_activations_that_fit_in_the_caches_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_choice, "_measured", lambda *_: pytest.fail("measured"))
    assert compiled(Chain(), torch.randn(4, 16, 32), []).stretch is None


def test_a_network_that_fails_on_its_examples_is_left_whole(saved: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(row_choice, "_saved", fails)
    with pytest.warns(AnsorWarning, match="the network was not tried with fewer rows at a time: out of luck"):
        assert compiled(Chain(), torch.randn(4, 16, 32), []).stretch is None


def test_groups_are_really_timed() -> None:
    whole = extract(Chain(), torch.randn(4, 16, 32))
    parts = in_parts(whole, stretches(whole, 4)[0])
    kernels = row_choice._kernels([whole, parts.extracted], parse_target(TARGET), RunOptions.of({}), Reporter())
    seconds, total = row_choice._saved(parts, row_choice._network(whole, kernels), row_choice._network(parts.extracted, kernels), 1)
    assert len(seconds) == len(whole.placed) and total > 0.0


def test_records_say_how_the_network_was_divided(saved: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, records, states = Chain(), torch.randn(4, 16, 32), tmp_path / "records.jsonl", list[TaskState]()
    options = {"records": records, "library": False, "min_gain": 0.0}
    net = ansor.compile(model, rows, TARGET, trials=4, on_tasks=states.extend, **options)  # type: ignore[arg-type]
    assert net.stretch == Stretch(1, 3, 1)
    tuned = {state.task.workload_key for state in states if state.trials}
    assert tuned & {task.workload_key for task in ansor.extract_tasks(model, rows, TARGET, records=records).tasks}
    assert {task.workload_key for task in ansor.extract_tasks(model, rows, TARGET).tasks} != {
        task.workload_key for task in ansor.extract_tasks(model, rows, TARGET, records=records).tasks
    }
    monkeypatch.setattr(row_choice, "_chosen", lambda *_: pytest.fail("measured again"))
    assert ansor.compile(model, rows, TARGET, **options).stretch == net.stretch  # type: ignore[arg-type]


def test_records_say_that_a_network_is_left_whole(saved: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved[:] = [0.0] * 5
    rows, records = torch.randn(4, 16, 32), tmp_path / "records.jsonl"
    assert ansor.compile(Chain(), rows, TARGET, trials=4, records=records, library=False).stretch is None
    monkeypatch.setattr(row_choice, "_chosen", lambda *_: pytest.fail("measured again"))
    assert ansor.compile(Chain(), rows, TARGET, records=records, library=False).stretch is None


def test_a_kept_network_is_tuned_as_it_is(saved: list[float], own_cache: Path) -> None:
    rows, gains = torch.randn(4, 16, 32), list(saved)
    extracted = extract(Chain(), rows)
    saved[:] = [0.0] * 5
    net = ansor.compile(extracted, (), TARGET, library=False)
    assert net.stretch is None
    kept_networks.keep("chain", {"why": "", "strides": [], "lines": []}, [], extracted, net, TARGET)
    saved[:] = gains  # now the tuner would divide it
    list(tuned(Job("chain", TARGET, 0.02, 1, False, 0, os.getpid())))
    found = kept_networks.found("chain", TARGET, [])
    assert found is not None and found.network is not None
    torch.testing.assert_close(found.network(rows), net(rows))
