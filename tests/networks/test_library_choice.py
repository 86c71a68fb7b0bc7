"""Which kernels a network runs: the rule with given times, what is recorded of it, and whole compilations."""

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
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.library import LibraryKernel
from ansor.graph.network import CompiledNetwork, torch_threads
from ansor.graph.rivals import Rivals
from ansor.graph.tasks import ExtractedGraph, extract
from ansor.measure.record import RecordFile, load, make_header
from ansor.networks.comparisons import program_digest
from ansor.networks.library_choice import Assembled, Candidates, assembled, runs_here
from ansor.run.zero_tuning import pick
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ONE = "cpu -threads=1"


class Counting(ReferenceKernel):
    """Our kernel here: NumPy, which counts its runs."""

    runs = 0

    def prepare(self, arrays, memory, like=None):  # type: ignore[no-untyped-def]
        run = super().prepare(arrays, memory)

        def counted() -> None:
            Counting.runs += 1
            run()

        return counted


@pytest.fixture(scope="module")
def extracted() -> ExtractedGraph:
    torch.manual_seed(0)
    return extract(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh()).eval(), torch.zeros(2, 6))


class Bench:
    """Assembles the network with times that are given instead of measured."""

    def __init__(self, extracted: ExtractedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
        self.extracted = extracted
        self.tasks = [SearchTask(tensors=task.tensors, target=ONE, name=task.name) for task in extracted.tasks]
        self.bests = [pick(task).program for task in self.tasks]
        self.patch = monkeypatch
        self.lines: list[str] = []
        self.measured = 0
        self.given({}, faster=True)

    def given(self, wins: dict[int, bool], *, faster: bool) -> None:
        def times(*_: object) -> list[Rivals]:
            self.measured += 1
            return [Rivals(1.0, 0.5 if wins.get(task) else 2.0) for task in range(len(self.tasks))]

        self.patch.setattr(measured, "rivals", times)
        self.patch.setattr(measured, "faster", lambda *_: faster)

    def network(self, records: Path | None = None) -> CompiledNetwork:
        self.lines.clear()
        kernels = [Counting(task.tensors) for task in self.extracted.tasks]
        return assembled(self.extracted, self.tasks, self.bests, kernels, records, self.lines.append).network

    def ours(self, records: Path | None = None) -> int:
        """How many of our kernels one run of the network calls; its results are checked."""
        network = self.network(records)
        Counting.runs = 0
        given = torch.randn(2, 6)
        found = network(given)
        count = Counting.runs
        all_ours = CompiledNetwork(self.extracted, [ReferenceKernel(task.tensors) for task in self.extracted.tasks])
        torch.testing.assert_close(found, all_ours(given))
        return count


@pytest.fixture
def bench(extracted: ExtractedGraph, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(extracted, monkeypatch)


def test_the_library_has_to_be_clearly_faster() -> None:
    assert Rivals(1.0, 0.9).other_wins()
    assert not Rivals(1.0, 0.96).other_wins() and not Rivals(1.0, 1.0).other_wins() and not Rivals(1.0, 3.0).other_wins()


def test_what_is_faster_runs_and_is_said(bench: Bench) -> None:
    assert [task.weight for task in bench.extracted.tasks] == [1, 2]
    assert (bench.ours(), bench.lines) == (3, [])
    bench.given({1: True}, faster=True)
    assert bench.ours() == 1
    assert bench.lines == ["2 of 3 groups run PyTorch's own kernels, which are faster here: dense_2x5x5_bias_tanh"]
    bench.given({0: True, 1: True}, faster=True)
    assert bench.ours() == 0


def test_nothing_is_exchanged_if_the_whole_network_is_not_faster(bench: Bench) -> None:
    bench.given({0: True, 1: True}, faster=False)
    assert (bench.ours(), bench.lines) == (3, [])


def test_groups_without_a_form_in_pytorch_stay_ours(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.graph.library.library_kernels", lambda extracted: [None, None])
    bench.given({0: True, 1: True}, faster=True)
    assert bench.ours() == 3


def test_choices_are_recorded_and_not_measured_again(bench: Bench, tmp_path: Path) -> None:
    records = tmp_path / "net.jsonl"
    bench.given({1: True}, faster=True)
    bench.ours(records)
    assert not records.exists()  # only a file that is there is added to
    RecordFile(records, make_header(CToolchain(find_compiler()))).close()
    assert (bench.ours(records), bench.measured) == (1, 2)
    found = load(records).comparisons
    assert [(one.library_chosen, one.ours_s, one.library_s, one.program) for one in found] == [
        (False, 1.0, 2.0, program_digest(bench.bests[0])), (True, 1.0, 0.5, program_digest(bench.bests[1])),
    ]
    assert [one.workload for one in found] == [task.workload_key for task in bench.tasks]
    bench.given({}, faster=False)
    assert (bench.ours(records), bench.measured) == (1, 2)
    assert bench.lines == ["2 of 3 groups run PyTorch's own kernels, which are faster here: dense_2x5x5_bias_tanh"]


def test_a_comparison_that_cannot_be_recorded_is_used_all_the_same(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tmp_path / "net.jsonl"
    RecordFile(records, make_header(CToolchain(find_compiler()))).close()
    bench.given({1: True}, faster=True)

    def full(*_: object) -> None:
        raise RecordError(f"{records}: a record could not be written")

    monkeypatch.setattr(RecordFile, "append_comparison", full)
    with pytest.warns(AnsorWarning, match="the comparison with PyTorch's kernels is not recorded: .*could not be written"):
        assert bench.ours(records) == 1
    assert bench.lines


def test_another_program_of_ours_is_compared_anew(bench: Bench, tmp_path: Path) -> None:
    records = tmp_path / "net.jsonl"
    RecordFile(records, make_header(CToolchain(find_compiler()))).close()
    bench.ours(records)
    space = next(space for space in bench.tasks[0].spaces if space.sizes.size and space.sizes.max() > 1)
    row = tuple(int(size) - 1 for size in space.sizes)
    bench.bests[0] = type(bench.bests[0])(space.sketch, row, 1.0)
    bench.ours(records)
    assert bench.measured == 2


def test_only_this_machines_processor_is_measured() -> None:
    assert runs_here(parse_target(ONE)) and not runs_here(parse_target("cpu -mcpu=x86_64"))


def test_times_are_those_of_all_uses_in_turns(extracted: ExtractedGraph) -> None:
    """Each look at this clock takes a second more on our side than on PyTorch's."""
    candidates = Candidates(extracted, [], [], [ReferenceKernel(task.tensors) for task in extracted.tasks], _library(extracted))
    ours, theirs = candidates.network([False, False]), candidates.network([True, True])
    now = 0.0
    speed = 0.0

    def clock() -> float:
        nonlocal now
        now += speed
        return now

    def slowed(network: CompiledNetwork, seconds: float) -> None:
        def first() -> None:
            nonlocal speed
            speed = seconds

        step = network.runs[0]

        def both() -> None:
            first()
            step()

        network.run_by(lambda steps: (both, *steps[1:]))

    slowed(ours, 0.002)
    slowed(theirs, 0.001)
    found = measured.rivals(extracted, ours, theirs, 1, clock)
    assert len(found) == 2 and (found[1].ours, found[1].other) == pytest.approx((0.004, 0.002))
    assert measured.faster(theirs, ours, None, 1, clock) and not measured.faster(ours, theirs, None, 1, clock)


def test_the_threads_of_pytorch_come_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(KeyError), torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


def _library(extracted: ExtractedGraph) -> Sequence[LibraryKernel | None]:
    from ansor.graph.library import library_kernels

    return library_kernels(extracted)


def test_compile_asks_only_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ExtractedGraph] = []

    def spy(extracted: ExtractedGraph, *rest: object) -> Assembled:
        asked.append(extracted)
        return assembled(extracted, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("ansor.networks.compiling.assembled", spy)
    model, x = nn.Linear(4, 3).eval(), torch.randn(2, 4)
    for target, library, count in ((ONE, False, 0), ("cpu -threads=1 -mcpu=x86_64", True, 0), (ONE, True, 1)):
        network = ansor.compile(model, x, target, library=library)
        torch.testing.assert_close(network(x), model(x).detach())
        assert len(asked) == count


def test_tuned_and_recorded_from_end_to_end(tmp_path: Path) -> None:
    records = tmp_path / "net.jsonl"
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval(), torch.randn(1, 3, 8, 8)
    network = ansor.compile(model, x, ONE, trials=4, records=records)
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    first = load(records)
    assert len(first.records) == 4 and first.comparisons and not first.skipped
    again = ansor.compile(model, x, ONE, records=records)
    torch.testing.assert_close(again(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    assert load(records).comparisons == first.comparisons
