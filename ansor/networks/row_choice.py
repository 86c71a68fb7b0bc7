"""Chooses a stretch of a network to compute for a few rows of the batch at a time, where that is faster on this machine.

The activations of a whole batch leave the caches, those of one row may not; weights are then read once for each row. So the first layers of an image network
are often faster in parts, and the last ones are not. The network is timed both ways, group by group, with the programs that are known or picked. The choice
is kept in the cache folder; that of a run with a record file is in the file, and decides which tasks its records are of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.measure.machine_identity import processor_identity
from ansor.measure.turns import turn
from ansor.networks.comparisons import network_key, record_choices, recorded_choices
from ansor.networks.kept_plans import words_of
from ansor.networks.library_choice import runs_here
from ansor.networks.network_kernel import NetworkKernel
from ansor.networks.step_run import joined
from ansor.run.choosing import chosen, recorded_states
from ansor.run.kernels import built
from ansor.run.keywords import RunOptions
from ansor.run.picks_together import pick_together
from ansor.run.reporter import Reporter
from ansor.support import kept_data
from ansor.support.notices import warn
from ansor.support.text import counted, first_line
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.kernels import GroupKernel
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.row_parts import InParts, Stretch
    from ansor.graph.tasks import ExtractedGraph

PART, MOST_BYTES = "stretches", 4 << 20
"""The part of the cache for choices, and the most bytes that they may take."""

MOST_PARTS = 32
"""The most parts of a batch: each adds calls to the network."""

SECONDS, FEWEST_ROUNDS = 2.0, 2
"""How long both ways are timed, and how often at least, after a round that warms up."""

LEAST_GAIN = 0.03
"""The share of the network's time that a stretch has to save: its parts are more calls, with further kernels to build and to tune."""

WHOLE = "all rows at once"
WAY = "groups {} to {}, {} at a time"
"""How record files name the ways to run a network."""


@dataclass(frozen=True)
class RowChoice:
    """The stretch that saves most, the seconds of all groups with and without it, and whether the network is faster with it."""

    stretch: Stretch
    seconds: float
    whole_seconds: float
    better: bool


@dataclass(frozen=True)
class Partition:
    """How a network is divided: `stretch`, None if it is not; `measured`: the choice if it was made now, for the record file."""

    stretch: Stretch | None = None
    measured: RowChoice | None = None

    def told(self, whole: ExtractedGraph) -> str:
        """The line about it; empty if the network is not divided."""
        if self.stretch is None:
            return ""
        count, groups = self.stretch.end - self.stretch.first, counted(len(whole.placed), "group")
        share = f"all {groups} are" if count == len(whole.placed) else f"{count} of {groups} {'is' if count == 1 else 'are'}"
        return f"{share} computed for {counted(self.stretch.rows, 'row')} of the batch at a time, which is faster here"

    def record(self, whole: ExtractedGraph, target: Target, records: str | Path | None) -> None:
        """Add the comparison to a file that exists, if it was made now."""
        from ansor.graph.rivals import Rivals

        if self.measured is None:
            return
        found = self.measured
        way = WAY.format(found.stretch.first, found.stretch.end, found.stretch.rows)
        result = (network_key(whole), way, WHOLE), Rivals(found.whole_seconds, found.seconds), found.better
        record_choices(records, target, [result], "with fewer rows at a time")


def partition(whole: ExtractedGraph, target: Target, asked: RunOptions, reporter: Reporter) -> Partition:
    """How a network is divided for this machine: as recorded or kept, otherwise as measured now."""
    from ansor.graph.row_parts import stretches

    possible = stretches(whole, MOST_PARTS) if runs_here(target) else ()
    if not possible or not _leaves_cache(whole, target):
        return Partition()
    way = None if asked.records is None else _recorded_way(whole, target, asked.records)
    return _chosen(whole, possible, target, asked, reporter) if way is None else Partition(_stretch_of(way, possible))


def as_recorded(whole: ExtractedGraph, target: Target, records: Sequence[str | Path]) -> ExtractedGraph:
    """The network as it was divided in the run that wrote the first of these files with such a choice: its tasks are those that the records are of."""
    from ansor.graph.attention_blocks import divided
    from ansor.graph.row_parts import stretches

    possible = stretches(whole, MOST_PARTS) if records else ()
    ways = (_recorded_way(whole, target, file) for file in records) if possible else iter(())
    found = (_stretch_of(way, possible) for way in ways if way is not None)
    stretch = next((one for one in found if one is not None), None)
    return divided(whole, stretch, target.threads)


def _recorded_way(whole: ExtractedGraph, target: Target, records: str | Path) -> str | None:
    """The way that a record file says to run a network; None if it does not say."""
    key = network_key(whole)
    compared = recorded_choices(records, target).items()
    ways = [way if better else WHOLE for (network, way, other), better in compared if (network, other) == (key, WHOLE)]
    return ways[-1] if ways else None


def _stretch_of(way: str, possible: Sequence[Stretch]) -> Stretch | None:
    """The possible stretch that `way` says to divide; None if it names no stretch, or one that is no longer possible."""
    return next((one for one in possible if WAY.format(one.first, one.end, one.rows) == way), None)


def _chosen(whole: ExtractedGraph, possible: Sequence[Stretch], target: Target, asked: RunOptions, reporter: Reporter) -> Partition:
    """The partition that an earlier process has kept, otherwise that of the faster way."""
    from ansor.graph.row_parts import Stretch

    words = words_of(whole, target, asked) if asked.records is None else None
    name = "" if words is None else kept_data.name_of((*words, processor_identity()))
    content = kept_data.read(PART, name) if name else None
    if content is not None:
        numbers = json.loads(content)
        known = None if numbers is None else Stretch(*numbers)
        if known is None or known in possible:  # with other weights, other constants may repeat themselves
            return Partition(known)
    reporter.now("trying fewer rows at a time")
    try:
        found = _measured(whole, possible, target, asked, reporter)
    except Exception as error:  # PyTorch's operators may run here, so any error may be raised
        warn(f"the network was not tried with fewer rows at a time: {first_line(error)}")
        return Partition()
    stretch = found.stretch if found.better else None
    if name:
        kept_data.write(PART, name, json.dumps(None if stretch is None else [stretch.first, stretch.end, stretch.rows]).encode(), MOST_BYTES)
    return Partition(stretch, found)


def _leaves_cache(whole: ExtractedGraph, target: Target) -> bool:
    """Whether the activations of all rows exceed the second-level caches: below that, parts gain nothing."""
    from ansor.graph.network import plan_memory

    return plan_memory(whole).size > target.hardware.caches.l2_bytes * target.threads > 0


def _measured(whole: ExtractedGraph, possible: Sequence[Stretch], target: Target, asked: RunOptions, reporter: Reporter) -> RowChoice:
    """The stretch that saves most, of those in the longest one."""
    from ansor.graph.rivals import faster
    from ansor.graph.row_parts import in_parts

    longest = max(possible, key=lambda one: one.end - one.first)
    parts = in_parts(whole, longest)
    kernels = _kernels([whole, parts.extracted], target, asked, reporter)
    network = _network(whole, kernels)
    with turn():
        saved, total = _saved(parts, network, _network(parts.extracted, kernels), target.threads)
        until = [0.0, *accumulate(saved)]
        within = [one for one in possible if longest.first <= one.first and one.end <= longest.end]
        best = max(within, key=lambda one: until[one.end] - until[one.first])
        gain = until[best.end] - until[best.first]
        better = gain >= LEAST_GAIN * total
        if better:
            mixed = _network(in_parts(whole, best).extracted, kernels)
            better = faster(mixed, network, whole.examples, target.threads, fewest=FEWEST_ROUNDS, budget=SECONDS)
    return RowChoice(best, total - gain, total, better)


def _kernels(networks: Sequence[ExtractedGraph], target: Target, asked: RunOptions, reporter: Reporter) -> dict[str, GroupKernel]:
    """Kernels of the best recorded programs, or of those that the model picks, by the keys of the networks' tasks."""
    needed = {task.key: task for network in networks for task in network.tasks}
    tasks = [SearchTask(tensors=group.tensors, target=target, name=group.name) for group in needed.values()]
    states = recorded_states([(task, 1.0) for task in tasks], asked.records)
    pick_together(list(states.values()), asked.search.model, asked.search.seed)
    programs = [chosen(states[task.workload_key], asked.search.model, asked.search.seed) for task in tasks]
    return dict(zip(needed, map(NetworkKernel, built(tasks, programs, target.toolchain(), reporter.alarm)), strict=True))


def _network(extracted: ExtractedGraph, kernels: Mapping[str, GroupKernel]) -> CompiledNetwork:
    from ansor.graph.network import CompiledNetwork

    network = CompiledNetwork(extracted, [kernels[task.key] for task in extracted.tasks])
    network.run_by(joined)
    return network


def _saved(parts: InParts, whole: CompiledNetwork, divided: CompiledNetwork, threads: int) -> tuple[list[float], float]:
    """For each group of the whole network the seconds that its parts save, and the seconds of all groups."""
    from ansor.graph.network import torch_threads
    from ansor.graph.rivals import in_turns
    from ansor.graph.step_seconds import low, one_round

    examples, clock = parts.extracted.examples, time.perf_counter
    runs = [partial(one_round, network, examples, clock) for network in (whole, divided)]
    with torch_threads(threads):
        found = in_turns(runs, SECONDS, clock, lambda _: False, FEWEST_ROUNDS)
    before, after = ([low(column) for column in zip(*rounds, strict=True)] for rounds in found)
    saved = list(before)
    for group, seconds in zip(parts.groups, after, strict=True):
        saved[group] -= seconds
    return saved, sum(before)
