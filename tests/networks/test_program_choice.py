"""Which of its fastest programs each task of a network runs: the rule with given times, what is recorded, and a whole tuning run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

import ansor
from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorWarning, RecordError, ToolchainError
from ansor.graph import rivals as measured
from ansor.graph.network import CompiledNetwork
from ansor.graph.rivals import Rivals
from ansor.graph.tasks import ExtractedGraph, extract
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.record import RecordFile, load, make_header
from ansor.networks.comparisons import program_digest
from ansor.networks.program_choice import Contenders, chosen_in_network
from ansor.run import kernels
from ansor.run.reporter import Reporter
from ansor.run.states import Best, TaskState
from ansor.support.termination import Terminated
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
    return Contenders(extracted, tasks, {task.workload_key: _programs(task, count) for task, count in zip(tasks, (3, 2), strict=True)})


def _programs(task: SearchTask, count: int) -> list[Best]:
    return [Best(space.sketch, (0,) * len(space.sizes), 1e-6) for space in task.spaces[:count]]


def _fewer(contenders: Contenders, most: int) -> Contenders:
    return Contenders(contenders.extracted, contenders.tasks, {key: known[:most] for key, known in contenders.ranked.items()})


class Given:
    """Times that are given instead of measured. shares: of each other program's time in the first one's, for each rank a number for each task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shares: Sequence[Sequence[float]], *, faster: bool = True) -> None:
        self.shares, self.measured, self.compared = list(shares), 0, 0
        self._faster, self._names = faster, dict[int, list[str]]()
        real = Contenders.network

        def network(contenders: Contenders, ranks: Mapping[str, int]) -> CompiledNetwork:
            made = real(contenders, ranks)
            self._names[id(made)] = [f"{ranks[task.workload_key]}" for task in contenders.tasks]
            return made

        monkeypatch.setattr(Contenders, "network", network)
        monkeypatch.setattr(measured, "rivals", self._rivals)
        monkeypatch.setattr(measured, "faster", self._is_faster)

    def _rivals(self, extracted: ExtractedGraph, ours: CompiledNetwork, other: CompiledNetwork, threads: int, *, fewest: int) -> list[Rivals]:
        self.measured += 1
        rank = self.measured
        assert threads == 1 and fewest >= 3
        assert (self._names[id(ours)], self._names[id(other)]) == (["0", "0"], [str(rank), str(rank if rank < 2 else 0)])
        torch.testing.assert_close(other(torch.ones(2, 6)), ours(torch.ones(2, 6)))
        return [Rivals(1.0, share) for share in self.shares[rank - 1]]

    def _is_faster(self, one: CompiledNetwork, other: CompiledNetwork, *_: object, fewest: int) -> bool:
        self.compared += 1
        assert fewest >= 3 and self._names[id(one)] != self._names[id(other)] == ["0", "0"]
        return self._faster


def _ranks(contenders: Contenders, records: Path | None = None, lines: list[str] | None = None, *, measures: bool = True) -> list[int]:
    reporter = Reporter(report=lambda line: None if lines is None else lines.append(line))
    found = chosen_in_network(contenders, records, reporter, measures=measures)
    assert list(found) == list(contenders.ranked)
    return [contenders.ranked[key].index(best) for key, best in found.items()]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "net.jsonl"
    RecordFile(path, make_header(CToolchain(find_compiler()))).close()
    return path


def test_each_task_runs_the_program_that_is_fastest_in_the_network(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.9, 0.7), (0.8, 0.1)])  # the second task has no third program, so its last time does not count
    lines: list[str] = []
    assert _ranks(contenders, lines=lines) == [2, 1]
    assert (given.measured, given.compared) == (2, 1)
    assert lines == ["for 2 of 2 kernels, a program that is not the fastest alone is used, because it is faster in the network"]


def test_times_vary_so_a_program_has_to_be_clearly_faster(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.98, 1.0), (1.0, 1.0)])
    lines: list[str] = []
    assert _ranks(contenders, lines=lines) == [0, 0]
    assert given.compared == 0 and lines == []


def test_nothing_changes_unless_the_whole_network_is_faster(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.5, 0.5), (0.5, 0.5)], faster=False)
    assert _ranks(contenders) == [0, 0]


def test_tasks_with_one_program_are_not_timed(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [])
    assert _ranks(_fewer(contenders, 1)) == [0, 0]
    assert given.measured == 0


def test_choices_are_recorded_and_not_measured_again(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [(0.9, 1.5), (0.8, 1.0)])
    assert _ranks(contenders, records) == [2, 0]
    first, second = ([program_digest(best) for best in known] for known in contenders.ranked.values())
    network = f"in network {contenders.name}"
    assert [(one.program, one.library, one.ours_s, one.library_s, one.library_chosen) for one in load(records).comparisons] == [
        (first[0], f"program {first[1]} {network}", 1.0, 0.9, False), (first[0], f"program {first[2]} {network}", 1.0, 0.8, True),
        (second[0], f"program {second[1]} {network}", 1.0, 1.5, False),
    ]  # fmt: skip
    for measures in (False, True):
        assert _ranks(contenders, records, measures=measures) == [2, 0]
    assert given.measured == 2


def test_nothing_is_measured_without_a_budget(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch, [])
    assert _ranks(contenders, records, measures=False) == [0, 0]
    assert given.measured == 0 and not load(records).comparisons


def test_choices_hold_for_one_network(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.9, 0.9), (1.0, 1.0)])
    assert _ranks(contenders, records) == [1, 1]
    tensors = extract(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU()).eval(), torch.zeros(2, 6))
    other = Contenders(tensors, contenders.tasks, contenders.ranked)
    assert other.name != contenders.name and other.recorded(records) is None


def test_tasks_of_one_computation_run_one_program(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their times are added: 0.5 and 1.6 of the first program's are no gain, 0.5 and 1.2 are."""
    twice = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).eval()
    extracted = extract(twice, torch.zeros(2, 4))
    (task, *_) = [SearchTask(tensors=one.tensors, target=ONE, name=one.name) for one in extracted.tasks]
    both = Contenders(extracted, [task, task], {task.workload_key: _programs(task, 2)})
    for share, rank in ((1.6, 0), (1.2, 1)):
        monkeypatch.setattr(Contenders, "network", lambda *_: None)
        monkeypatch.setattr(measured, "rivals", lambda *_, share=share, **__: [Rivals(1.0, 0.5), Rivals(1.0, share)])
        monkeypatch.setattr(measured, "faster", lambda *_, **__: True)
        assert _ranks(both) == [rank]


def test_ctrl_c_skips_the_comparison(contenders: Contenders, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    for error, caught in ((KeyboardInterrupt, False), (Terminated, True)):

        def stopped(*_: object, error: type[KeyboardInterrupt] = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(measured, "rivals", stopped)
        with pytest.raises(Terminated) if caught else nullcontext():
            assert _ranks(contenders, lines=lines) == [0, 0]
    assert lines == ["stopped by Ctrl-C: the fastest programs were not compared in the network"]


def test_a_program_that_does_not_build_ends_the_comparison(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build_kernels
    wrong = program_digest(contenders.ranked[contenders.tasks[1].workload_key][1])

    def build(sources: Sequence[CSource], toolchain: Toolchain | None) -> list[Kernel]:
        if any(source in refused for source in sources):
            raise ToolchainError("no such instruction")
        return real(sources, toolchain)

    refused: list[CSource] = []
    source = kernels._source

    def sources(task: SearchTask, best: Best, number: int) -> CSource:
        made = source(task, best, number)
        if program_digest(best) == wrong:
            refused.append(made)
        return made

    monkeypatch.setattr(kernels, "_source", sources)
    monkeypatch.setattr(kernels, "build_kernels", build)
    with pytest.warns(AnsorWarning, match="^the fastest programs were not compared in the network: dense.*: the chosen program does not build$"):
        assert _ranks(contenders, records) == [0, 0]
    assert not load(records).comparisons


def test_further_programs_are_compared_anew(contenders: Contenders, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Given(monkeypatch, [(0.9, 1.5)])
    assert _ranks(_fewer(contenders, 2), records) == [1, 0]
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
    def fails(*_: object, **__: object) -> None:
        raise IndexError("index 7 is out of range")

    monkeypatch.setattr(measured, "rivals", fails)
    with pytest.warns(AnsorWarning, match="the fastest programs were not compared in the network: index 7 is out of range"):
        assert _ranks(contenders) == [0, 0]


def test_a_tuned_network_runs_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs other than the fastest alone are faster here, whatever the real times are. A later call without a budget runs the same ones."""
    monkeypatch.setattr(measured, "rivals", lambda extracted, *_, **__: [Rivals(1.0, 0.5)] * len(extracted.tasks))
    monkeypatch.setattr(measured, "faster", lambda *_, **__: True)
    monkeypatch.setattr("ansor.run.states.NEAR", 1e9)
    records = tmp_path / "net.jsonl"
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).eval(), torch.randn(8, 64)
    programs = []
    for trials in (16, None):
        states: list[TaskState] = []
        network = ansor.compile(model, x, ONE, trials=trials, records=records, library=False, on_tasks=states.extend)
        torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
        assert all(state.best is not None and program_digest(state.best) == program_digest(state.leaders[1]) for state in states)
        programs.append([program_digest(state.best) for state in states if state.best is not None])
    assert programs[0] == programs[1]
    found = load(records)
    assert len(found.records) == 16 and found.comparisons and not found.skipped
