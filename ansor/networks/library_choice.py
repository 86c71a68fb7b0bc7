"""Chooses which groups of a network run PyTorch's own kernels: those that PyTorch runs faster, measured once and recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ansor.measure.machine_identity import processor_identity
from ansor.measure.record_target import record_target
from ansor.measure.turns import turn
from ansor.networks.comparisons import Pair, program_digest, record_choices, recorded_choices
from ansor.run.reporter import Report
from ansor.run.states import Best
from ansor.support import kept_data
from ansor.support.notices import warn
from ansor.support.package_state import package_state
from ansor.support.text import counted, first_line
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.kernels import GroupKernel
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.rivals import Rivals
    from ansor.graph.tasks import ExtractedGraph

PART, MOST_BYTES = "comparisons", 16 << 20
"""The part of the cache for choices made without a record file, and the most bytes that they may take."""

NAMED = 4  # kernels that are named when the choice is reported


def runs_here(target: Target) -> bool:
    """True if times measured here hold for the target: it is the processor of this machine."""
    return target.is_local and target.mcpu == "native"


@dataclass(frozen=True)
class Candidates:
    """A network's tasks, each with our program, our kernel, and PyTorch's kernel where there is one."""

    extracted: ExtractedGraph
    tasks: Sequence[SearchTask]
    bests: Sequence[Best]
    kernels: Sequence[GroupKernel]
    library: Sequence[GroupKernel | None]

    @property
    def threads(self) -> int:
        """Threads that run kernels."""
        return self.tasks[0].target.threads if self.tasks else 1

    def network(self, chosen: Sequence[bool]) -> CompiledNetwork:
        """The network that runs PyTorch's kernels for the chosen tasks."""
        from ansor.graph.network import CompiledNetwork

        kernels = [other if take and other is not None else kernel for kernel, other, take in zip(self.kernels, self.library, chosen, strict=True)]
        return CompiledNetwork(self.extracted, kernels)

    def recorded(self, records: str | Path | None) -> list[bool] | None:
        """The latest choice for each task in a file; None unless the file has a choice for every task."""
        if records is None or not Path(records).exists():
            return None
        known = recorded_choices(records, self.tasks[0].target) if self.tasks else {}
        found = [known.get(self.pair(number)) if other is not None else False for number, other in enumerate(self.library)]
        choices = [one for one in found if one is not None]
        return choices if len(choices) == len(found) else None

    def kept_name(self) -> str:
        """The key of the choices: everything that they depend on, which is the network, the machine, this package, and the threads of both kinds of kernels."""
        import torch

        tasks = [(task.key, task.weight, self.pair(number), record_target(self.tasks[number].target)) for number, task in enumerate(self.extracted.tasks)]
        order = [one.task for one in self.extracted.placed]
        has = [one is not None for one in self.library]
        return kept_data.name_of((tasks, order, has, sorted(self.extracted.torch_calls), torch.get_num_threads(), processor_identity(), package_state()))

    def pair(self, number: int) -> Pair:
        """Our program of a task and PyTorch's kernel, as they are recorded."""
        import torch

        return self.tasks[number].workload_key, f"torch {torch.__version__}", program_digest(self.bests[number])


class Assembled(NamedTuple):
    """A network. `compared`: False if it has none of PyTorch's kernels because the comparison failed; the next process then tries again."""

    network: CompiledNetwork
    compared: bool = True


def assembled(
    extracted: ExtractedGraph,
    tasks: Sequence[SearchTask],
    bests: Sequence[Best],
    kernels: Sequence[GroupKernel],
    records: str | Path | None,
    report: Report,
) -> Assembled:
    """The network of `kernels`, with those replaced for which PyTorch's are faster. `report` gets one line that names them.

    `records`: comparisons in it are not measured again, and new ones are added if the file exists. Without records, the choices are kept in the cache
    folder.
    """
    from ansor.graph.library import library_kernels

    candidates = Candidates(extracted, tasks, bests, kernels, library_kernels(extracted))
    chosen = candidates.recorded(records) if records is not None else _kept(candidates)
    compared = True
    if chosen is None:
        network, chosen, times = _compared(candidates)
        compared = bool(times)
        _record(candidates, times, chosen, records)
        if kept_data.ENABLED and records is None and times:
            kept_data.write(PART, candidates.kept_name(), json.dumps(chosen).encode(), MOST_BYTES)
    else:
        network = candidates.network(chosen)
    _say(extracted, chosen, report)
    return Assembled(network, compared)


def _kept(candidates: Candidates) -> list[bool] | None:
    """What an earlier process chose for such a network."""
    content = kept_data.read(PART, candidates.kept_name()) if kept_data.ENABLED else None
    found = json.loads(content) if content is not None else None
    return found if isinstance(found, list) and len(found) == len(candidates.library) else None


def _compared(candidates: Candidates) -> tuple[CompiledNetwork, list[bool], list[Rivals]]:
    """As `_measured`. If the network cannot run on its example inputs (because of indices out of range, for example), none of PyTorch's kernels is chosen."""
    try:
        with turn():
            return _measured(candidates)
    except Exception as error:  # PyTorch's operators run here, so any error may be raised
        warn(f"PyTorch's kernels were not compared with ours, because the network does not run on its example inputs: {first_line(error)}")
        none = [False] * len(candidates.library)
        return candidates.network(none), none, []


def _measured(candidates: Candidates) -> tuple[CompiledNetwork, list[bool], list[Rivals]]:
    """The fastest network, for each task whether it runs PyTorch's kernel, and the times. PyTorch's kernels run only if the whole network is then faster."""
    from ansor.graph.rivals import faster, rivals

    has = [one is not None for one in candidates.library]
    network = candidates.network([False] * len(has))
    times = rivals(candidates.extracted, network, candidates.network(has), candidates.threads)
    chosen = [known and one.other_wins() for known, one in zip(has, times, strict=True)]
    if any(chosen):
        mixed = candidates.network(chosen)
        if faster(mixed, network, candidates.extracted.examples, candidates.threads):
            network = mixed
        else:
            chosen = [False] * len(has)
    return network, chosen, times


def _record(candidates: Candidates, times: Sequence[Rivals], chosen: Sequence[bool], records: str | Path | None) -> None:
    """Add the comparison to a file that exists."""
    if not times:
        return
    compared = [number for number, other in enumerate(candidates.library) if other is not None]
    results = [(candidates.pair(number), times[number], chosen[number]) for number in compared]
    record_choices(records, candidates.tasks[0].target, results, "with PyTorch's kernels")


def _say(extracted: ExtractedGraph, chosen: Sequence[bool], report: Report) -> None:
    taken = [task for task, take in zip(extracted.tasks, chosen, strict=True) if take]
    if not taken:
        return
    names = ", ".join(task.name for task in taken[:NAMED])
    more = f" and {len(taken) - NAMED} more" if len(taken) > NAMED else ""
    uses, groups = sum(task.weight for task in taken), counted(sum(extracted.weights), "group")
    report(f"{uses} of {groups} run PyTorch's own kernels, which are faster here: {names}{more}")
