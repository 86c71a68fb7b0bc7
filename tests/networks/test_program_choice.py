"""Which of its fastest programs each task of a network runs: the rule with given times, what is recorded, and a whole tuning run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

import ansor
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorWarning, RecordError
from ansor.graph import rivals as measured
from ansor.graph.network import CompiledNetwork
from ansor.graph.rivals import Rivals
from ansor.graph.tasks import ExtractedGraph, extract
from ansor.measure.record import RecordFile, load, make_header
from ansor.networks.library_choice import program_digest
from ansor.networks.program_choice import Contenders, chosen_in_network
from ansor.run.reporter import Reporter
from ansor.run.states import Best
from ansor.tasks.task import SearchTask

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ONE = "cpu -threads=1"


@pytest.fixture(scope="module")
def extracted() -> ExtractedGraph:
    torch.manual_seed(0)
    return extract(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)).eval(), torch.zeros(2, 6))


@pytest.fixture(scope="module")
def contenders(extracted: ExtractedGraph) -> Contenders:
    """Three programs of the first task, and two of the second."""
    tasks = [SearchTask(tensors=task.tensors, target=ONE, name=task.name) for task in extracted.tasks]
    return Contenders(extracted, tasks, [_programs(task, count) for task, count in zip(tasks, (3, 2), strict=True)])


def _programs(task: SearchTask, count: int) -> list[Best]:
    return [Best(space.sketch, (0,) * len(space.sizes), 1e-6) for space in task.spaces[:count]]


class Given:
    """Times that are given instead of measured. shares: of each other program's time in the first one's, for each rank a number for each task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shares: Sequence[Sequence[float]], *, faster: bool = True) -> None:
        self.shares, self.measured, self.compared = list(shares), 0, 0
        self._faster = faster
        monkeypatch.setattr(measured, "rivals", self._rivals)
        monkeypatch.setattr(measured, "faster", self._is_faster)

    def _rivals(self, extracted: ExtractedGraph, ours: CompiledNetwork, other: CompiledNetwork, threads: int) -> list[Rivals]:
        self.measured += 1
        assert threads == 1
        torch.testing.assert_close(other(torch.ones(2, 6)), ours(torch.ones(2, 6)))
        return [Rivals(1.0, share) for share in self.shares[self.measured - 1]]

    def _is_faster(self, *_: object) -> bool:
        self.compared += 1
        return self._faster


def _ranks(contenders: Contenders, records: Path | None = None, lines: list[str] | None = None) -> list[int]:
    found = chosen_in_network(contenders, records, Reporter() if lines is None else Reporter(report=lines.append))
    return [known.index(best) for known, best in zip(contenders.ranked, found, strict=True)]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "net.jsonl"
    RecordFile(path, make_header(CToolchain(find_compiler()))).close()
    return path


def test_each_task_runs_the_program_that_is_fastest_in_the_network(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.9, 0.7), (0.8, 0.1)])  # the second task has no third program: the last time is the first's own luck
    lines: list[str] = []
    assert _ranks(contenders, lines=lines) == [2, 1]
    assert (given.measured, given.compared) == (2, 1)
    assert lines == ["2 of 2 kernels run programs that are slower alone, and faster in the network"]


def test_times_vary_so_a_program_has_to_be_clearly_faster(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.99, 1.0), (1.0, 1.0)])
    lines: list[str] = []
    assert _ranks(contenders, lines=lines) == [0, 0]
    assert given.compared == 0 and lines == []


def test_nothing_changes_unless_the_whole_network_is_faster(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.5, 0.5), (0.5, 0.5)], faster=False)
    assert _ranks(contenders) == [0, 0]


def test_tasks_with_one_program_are_not_timed(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [])
    assert _ranks(Contenders(contenders.extracted, contenders.tasks, [known[:1] for known in contenders.ranked])) == [0, 0]
    assert given.measured == 0


def test_choices_are_recorded_and_not_measured_again(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.9, 1.5), (0.8, 1.0)])
    assert _ranks(contenders, records) == [2, 0]
    first, second = ([program_digest(best) for best in known] for known in contenders.ranked)
    assert [(one.program, one.library, one.ours_s, one.library_s, one.library_chosen) for one in load(records).comparisons] == [
        (first[0], f"program {first[1]}", 1.0, 0.9, False), (first[0], f"program {first[2]}", 1.0, 0.8, True),
        (second[0], f"program {second[1]}", 1.0, 1.5, False),
    ]  # fmt: skip
    assert _ranks(contenders, records) == [2, 0]
    assert given.measured == 2


def test_further_programs_are_compared_anew(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = Contenders(contenders.extracted, contenders.tasks, [known[:2] for known in contenders.ranked])
    Given(monkeypatch, [(0.9, 1.5)])
    assert _ranks(fewer, records) == [1, 0]
    given = Given(monkeypatch, [(0.9, 1.5), (0.5, 1.0)])
    assert _ranks(contenders, records) == [2, 0]
    assert given.measured == 2


def test_a_file_that_is_not_there_is_not_made(contenders: Contenders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.9, 0.9), (1.0, 1.0)])
    assert _ranks(contenders, tmp_path / "none.jsonl") == [1, 1]
    assert not (tmp_path / "none.jsonl").exists()


def test_what_cannot_be_recorded_is_used_all_the_same(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.9, 0.9), (1.0, 1.0)])

    def full(*_: object) -> None:
        raise RecordError(f"{records}: a record could not be written")

    monkeypatch.setattr(RecordFile, "append_comparison", full)
    with pytest.warns(AnsorWarning, match="the comparison of programs in the network is not recorded: .*could not be written"):
        assert _ranks(contenders, records) == [1, 1]


def test_a_network_that_does_not_run_on_its_example_keeps_the_fastest_alone(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise IndexError("index 7 is out of range")

    monkeypatch.setattr(measured, "rivals", fails)
    with pytest.warns(AnsorWarning, match="not compared in the network, because it does not run on its example inputs: .*index 7"):
        assert _ranks(contenders) == [0, 0]


def test_a_tuned_network_records_its_choices_and_makes_them_again(tmp_path: Path) -> None:
    records, lines = tmp_path / "net.jsonl", tmp_path / "before.jsonl"
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).eval(), torch.randn(8, 64)
    for trials in (24, None):
        network = ansor.compile(model, x, ONE, trials=trials, records=records, library=False)
        torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
        if trials:
            lines.write_bytes(records.read_bytes())
    found = load(records)
    assert len(found.records) == 24 and not found.skipped
    assert found.comparisons and all(one.library.startswith("program ") for one in found.comparisons)
    assert records.read_bytes() == lines.read_bytes()
