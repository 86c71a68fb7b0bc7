"""Chooses among the fastest measured programs of each task by their times in the network.

A search times kernels alone, with warm caches. In the network, weights come from memory, and activations are where the step before left them, so a program
that is a little slower alone may be faster there. Choices are added to the record file; they hold for the same network and the same programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.errors import ToolchainError
from ansor.measure.turns import turn
from ansor.networks.comparisons import Pair, network_key, program_digest, record_choices, recorded_choices
from ansor.networks.network_kernel import NetworkKernel
from ansor.run.kernels import built
from ansor.run.reporter import Reporter
from ansor.run.states import Best
from ansor.support.notices import warn
from ansor.support.termination import Terminated
from ansor.support.text import counted, first_line
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.rivals import Rivals
    from ansor.graph.tasks import ExtractedGraph

MARGIN = 1.03
"""How much faster another program has to be in the network, since times vary."""

FEWEST_ROUNDS = 4
"""Runs of each network after the first, which only warms up, however long they take."""

Ranks = Mapping[str, int]
"""For each workload key, which of its programs."""

Times = Mapping[str, Sequence["Rivals"]]
"""For each workload key, the times of its first program and of each other one."""


@dataclass(frozen=True)
class Contenders:
    """A network's tasks, and the programs to choose from. ranked: for each workload key at least one, the fastest alone first."""

    extracted: ExtractedGraph
    tasks: Sequence[SearchTask]
    ranked: Mapping[str, Sequence[Best]]

    @property
    def target(self) -> Target:
        return self.tasks[0].target

    @property
    def most(self) -> int:
        """The largest number of programs of one task."""
        return max(map(len, self.ranked.values()), default=0)

    @property
    def firsts(self) -> Ranks:
        """The programs that are fastest alone."""
        return dict.fromkeys(self.ranked, 0)

    @cached_property
    def name(self) -> str:
        """Identifies the network."""
        return network_key(self.extracted)

    def programs(self, ranks: Ranks) -> dict[str, Best]:
        """The program of each workload key."""
        return {key: known[ranks[key]] for key, known in self.ranked.items()}

    def network(self, ranks: Ranks) -> CompiledNetwork:
        """The network of these programs. Raises ToolchainError if one of them does not build."""
        from ansor.graph.network import CompiledNetwork

        programs = self.programs(ranks)
        kernels = built(self.tasks, [programs[task.workload_key] for task in self.tasks], self.target.toolchain(), _refuse)
        return CompiledNetwork(self.extracted, [NetworkKernel(kernel) for kernel in kernels])

    def recorded(self, records: str | Path | None) -> Ranks | None:
        """The programs that a file says to use; None unless it compares all of them in this network."""
        known = recorded_choices(records, self.target)
        found = {(key, rank): known.get(self.pair(key, rank)) for key, programs in self.ranked.items() for rank in range(1, len(programs))}
        if None in found.values():
            return None
        return {**self.firsts, **{key: rank for (key, rank), chosen in found.items() if chosen}}

    def pair(self, key: str, rank: int) -> Pair:
        """The first program of a task and another one, as they are recorded."""
        first, other = (program_digest(self.ranked[key][number]) for number in (0, rank))
        return key, f"program {other} in network {self.name}", first


def chosen_in_network(contenders: Contenders, records: str | Path | None, reporter: Reporter, *, measures: bool) -> dict[str, Best]:
    """For each workload key the program that is fastest in the network, as `records` says. Where it does not say so and `measures` is true, the programs are
    built and timed in the network, on its example inputs, and the comparisons added to that file if it exists. Otherwise, the fastest alone.

    `reporter` gets one line if any program is not the fastest alone. Ctrl-C skips the comparison.
    """
    if contenders.most < 2:
        return contenders.programs(contenders.firsts)
    ranks = contenders.recorded(records)
    if ranks is None and measures:
        reporter.now("trying the fastest programs in the network")
        ranks = _compared(contenders, records, reporter)
    ranks = ranks or contenders.firsts
    changed = sum(ranks[task.workload_key] > 0 for task in contenders.tasks)
    if changed:
        whole = counted(len(contenders.tasks), "kernel")
        reporter.say(f"for {changed} of {whole}, a program that is not the fastest alone is used, because it is faster in the network")
    return contenders.programs(ranks)


def _compared(contenders: Contenders, records: str | Path | None, reporter: Reporter) -> Ranks | None:
    """The fastest programs; None if they cannot be compared, for example because the network does not run on its example inputs."""
    try:
        first = contenders.network(contenders.firsts)
        times = _measured(contenders, first)
        ranks = _faster(contenders, first, times)
    except KeyboardInterrupt as stopped:
        if isinstance(stopped, Terminated):
            raise
        reporter.alarm("stopped by Ctrl-C: the fastest programs were not compared in the network")
        return None
    except Exception as error:  # PyTorch's operators run here, so any error may be raised
        warn(f"the fastest programs were not compared in the network: {first_line(error)}")
        return None
    results = [(contenders.pair(key, rank), one, rank == ranks[key]) for key, found in times.items() for rank, one in enumerate(found, 1)]
    record_choices(records, contenders.target, results, "of programs in the network")
    return ranks


def _measured(contenders: Contenders, first: CompiledNetwork) -> Times:
    """The times of each task's first program and of each other one, in turns. first: the network of the first ones."""
    found: dict[str, list[Rivals]] = {key: [] for key in contenders.ranked}
    for rank in range(1, contenders.most):
        for key, times in _against(contenders, first, rank).items():
            found[key].append(times)
    return found


def _against(contenders: Contenders, first: CompiledNetwork, rank: int) -> dict[str, Rivals]:
    """The times of the first programs, and of those of one rank. Their network, which has its own packed weights, ends with this call."""
    from ansor.graph.rivals import Rivals, rivals

    other = contenders.network({key: rank if rank < len(known) else 0 for key, known in contenders.ranked.items()})
    with turn():
        times = rivals(contenders.extracted, first, other, contenders.target.threads, fewest=FEWEST_ROUNDS)
    total = {key: Rivals(0.0, 0.0) for key, known in contenders.ranked.items() if rank < len(known)}
    for task, one in zip(contenders.tasks, times, strict=True):  # tasks of the same computation run the same program
        if task.workload_key in total:
            before = total[task.workload_key]
            total[task.workload_key] = Rivals(before.ours + one.ours, before.other + one.other)
    return total


def _faster(contenders: Contenders, first: CompiledNetwork, times: Times) -> Ranks:
    """Each task's fastest program, if the whole network is then faster; the first ones otherwise."""
    from ansor.graph.rivals import faster

    ranks = {key: _rank(found) for key, found in times.items()}
    if not any(ranks.values()):
        return ranks
    mixed = contenders.network(ranks)
    with turn():
        better = faster(mixed, first, contenders.extracted.examples, contenders.target.threads, fewest=FEWEST_ROUNDS)
    return ranks if better else contenders.firsts


def _rank(times: Sequence[Rivals]) -> int:
    """The number of the fastest program: 0 unless another one is clearly faster."""
    faster = [(one.other / one.ours, rank) for rank, one in enumerate(times, 1) if one.other_wins(MARGIN)]
    return min(faster, default=(1.0, 0))[1]


def _refuse(line: str) -> None:
    raise ToolchainError(line.split(";")[0])
