"""Chooses among the fastest measured programs of each task by their times in the network.

A search times kernels alone, with warm caches. In the network, weights come from memory, and activations are where the step before left them, so a program
that is a little slower alone may be faster there. Choices are added to the record file, and not measured again for the same programs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.errors import RecordError
from ansor.measure.record import Comparison, RecordFile, load, make_header, round_to
from ansor.measure.record_target import is_of, record_target
from ansor.measure.turns import turn
from ansor.networks.library_choice import program_digest
from ansor.networks.network_kernel import NetworkKernel
from ansor.run.kernels import built
from ansor.run.reporter import Reporter
from ansor.run.states import Best
from ansor.support.notices import warn
from ansor.support.text import counted, first_line
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.rivals import Rivals
    from ansor.graph.tasks import ExtractedGraph

MARGIN = 1.02
"""How much faster another program has to be in the network, since times vary."""


@dataclass(frozen=True)
class Contenders:
    """A network's tasks, and the programs to choose from: at least one for each task, the fastest alone first."""

    extracted: ExtractedGraph
    tasks: Sequence[SearchTask]
    ranked: Sequence[Sequence[Best]]

    @property
    def target(self) -> Target:
        return self.tasks[0].target

    @property
    def most(self) -> int:
        """The largest number of programs of one task."""
        return max(map(len, self.ranked), default=0)

    def network(self, ranks: Sequence[int], reporter: Reporter) -> CompiledNetwork:
        """The network of one program for each task; its last one for ranks beyond it."""
        from ansor.graph.network import CompiledNetwork

        bests = [known[min(rank, len(known) - 1)] for known, rank in zip(self.ranked, ranks, strict=True)]
        kernels = built(self.tasks, bests, self.target.toolchain(), reporter.alarm)
        return CompiledNetwork(self.extracted, [NetworkKernel(kernel) for kernel in kernels])

    def comparison(self, number: int, rank: int, times: Rivals, chosen: bool) -> Comparison:
        """The record of a task's first program and another one."""
        workload, target, other, first = self._key(number, rank, record_target(self.target))
        return Comparison(workload, target, other, first, times.ours, times.other, chosen, round_to(time.time()))

    def recorded(self, records: str | Path | None) -> list[int] | None:
        """For each task the number of the program that a file says to use; None unless the file compares all programs."""
        if records is None or not Path(records).exists():
            return None
        compared = load(records).comparisons
        here = {text: record_target(self.target) if is_of(text, self.target) else text for text in {one.target for one in compared}}
        known = {(one.workload, here[one.target], one.library, one.program): one.library_chosen for one in compared}
        ranks = [0] * len(self.tasks)
        for number, programs in enumerate(self.ranked):
            for rank in range(1, len(programs)):
                chosen = known.get(self._key(number, rank, record_target(self.target)))
                if chosen is None:
                    return None
                ranks[number] = rank if chosen else ranks[number]
        return ranks

    def _key(self, number: int, rank: int, target: str) -> tuple[str, str, str, str]:
        programs = self.ranked[number]
        return self.tasks[number].workload_key, target, f"program {program_digest(programs[rank])}", program_digest(programs[0])


def chosen_in_network(contenders: Contenders, records: str | Path | None, reporter: Reporter) -> list[Best]:
    """For each task the program that is fastest in the network.

    Programs are built, and the network runs on its example inputs, unless `records` compares them already; new comparisons are added to that file if it
    exists. `reporter` gets one line if any program is not the fastest alone.
    """
    firsts = [known[0] for known in contenders.ranked]
    if contenders.most < 2:
        return firsts
    ranks = contenders.recorded(records)
    if ranks is None:
        reporter.now("trying the fastest programs in the network")
        ranks = _compared(contenders, records, reporter)
    changed = sum(map(bool, ranks))
    if changed:
        reporter.say(f"{changed} of {counted(len(ranks), 'kernel')} run programs that are slower alone, and faster in the network")
    return [known[rank] for known, rank in zip(contenders.ranked, ranks, strict=True)]


def _compared(contenders: Contenders, records: str | Path | None, reporter: Reporter) -> list[int]:
    """The number of each task's fastest program. If the network cannot run on its example inputs (because of indices out of range, for example), the first."""
    try:
        first = contenders.network([0] * len(contenders.tasks), reporter)
        times = _measured(contenders, first, reporter)
        ranks = _faster(contenders, first, times, reporter)
    except Exception as error:  # PyTorch's operators run here, so any error may be raised
        warn(f"the fastest programs were not compared in the network, because it does not run on its example inputs: {first_line(error)}")
        return [0] * len(contenders.tasks)
    _record(contenders, times, ranks, records)
    return ranks


def _measured(contenders: Contenders, first: CompiledNetwork, reporter: Reporter) -> list[list[Rivals]]:
    """The times of each task's first program and of each other one, in turns. first: the network of the first ones; there is only one more at a time, since
    each has its own packed weights."""
    from ansor.graph.rivals import rivals

    found: list[list[Rivals]] = [[] for _ in contenders.tasks]
    for rank in range(1, contenders.most):
        other = contenders.network([rank] * len(contenders.tasks), reporter)
        with turn():
            times = rivals(contenders.extracted, first, other, contenders.target.threads)
        for programs, one, known in zip(contenders.ranked, times, found, strict=True):
            if rank < len(programs):
                known.append(one)
    return found


def _faster(contenders: Contenders, first: CompiledNetwork, times: Sequence[Sequence[Rivals]], reporter: Reporter) -> list[int]:
    """The number of each task's fastest program, if the whole network is then faster; the first ones otherwise."""
    from ansor.graph.rivals import faster

    ranks = [_rank(found) for found in times]
    if not any(ranks):
        return ranks
    mixed = contenders.network(ranks, reporter)
    with turn():
        better = faster(mixed, first, contenders.extracted.examples, contenders.target.threads)
    return ranks if better else [0] * len(ranks)


def _rank(times: Sequence[Rivals]) -> int:
    """The number of the fastest program: 0 unless another one is clearly faster."""
    shares = [one.other / one.ours for one in times]
    least = min(shares, default=1.0)
    return shares.index(least) + 1 if least * MARGIN < 1.0 else 0


def _record(contenders: Contenders, times: Sequence[Sequence[Rivals]], ranks: Sequence[int], records: str | Path | None) -> None:
    """Add the comparisons to a file that exists. If the file is read-only, the next run compares again."""
    if records is None or not Path(records).exists():
        return
    try:
        with RecordFile(records, make_header(contenders.target.toolchain())) as file:
            for number, found in enumerate(times):
                for rank, one in enumerate(found, 1):
                    file.append_comparison(contenders.comparison(number, rank, one, rank == ranks[number]))
    except RecordError as error:
        warn(f"the comparison of programs in the network is not recorded: {first_line(error)}")
