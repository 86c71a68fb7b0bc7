"""Chooses a stretch of a network to compute for a few rows of the batch at a time, where that is faster on this machine.

The activations of a whole batch leave the caches, those of one row may not; weights are then read once for each row. So the first layers of an image network
are often faster in parts, and the last ones are not. The network is timed both ways, group by group, with the programs that are known or picked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.measure.machine_identity import processor_identity
from ansor.measure.turns import turn
from ansor.networks.kept_plans import words_of
from ansor.networks.library_choice import runs_here
from ansor.networks.network_kernel import NetworkKernel
from ansor.run.choosing import chosen, recorded_states
from ansor.run.kernels import built
from ansor.run.keywords import RunOptions
from ansor.run.picks_together import pick_together
from ansor.run.reporter import Reporter
from ansor.support import kept_data, safe_files
from ansor.support.notices import warn
from ansor.support.text import counted, first_line
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.kernels import GroupKernel
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.row_parts import InParts, Room, Stretch
    from ansor.graph.tasks import ExtractedGraph

PART, MOST_BYTES = "stretches", 4 << 20
"""The part of the cache for choices, and the most bytes that they may take."""

MOST_PARTS = 32
"""The most parts of a batch: each adds calls to the network."""

SECONDS, FEWEST_ROUNDS = 2.0, 2
"""How long both ways are timed, and how often at least, after a round that warms up."""

LEAST_GAIN = 0.03
"""The share of the network's time that a stretch has to save: its parts are more calls, with further kernels to build and to tune."""


def stretch_in_parts(whole: ExtractedGraph, target: Target, asked: RunOptions, reporter: Reporter) -> Stretch | None:
    """The stretch to compute in parts; None if there is none, or that is not faster here. Measured, unless an earlier process has kept the choice."""
    from ansor.graph.row_parts import Stretch, room

    if not runs_here(target) or not _leaves_cache(whole, target):
        return None
    found = room(whole, MOST_PARTS)
    if found.longest is None:
        return None
    name = _name(whole, target, asked)
    content = kept_data.read(PART, name) if name else None
    if content is not None:
        known = None if json.loads(content) is None else Stretch(*json.loads(content))
        if known is None or known in found.stretches():  # other weights may have other arrays that all rows share
            return known
    reporter.now("trying fewer rows at a time")
    try:
        choice = _measured(whole, found, target, asked, reporter)
    except Exception as error:  # PyTorch's operators may run here, so any error may be raised
        warn(f"the network was not tried with fewer rows at a time: {first_line(error)}")
        return None
    if name:
        kept_data.write(PART, name, json.dumps(None if choice is None else astuple(choice)).encode(), MOST_BYTES)
    return choice


def told(whole: ExtractedGraph, stretch: Stretch) -> str:
    """The line about a stretch."""
    every = "all" if stretch.end - stretch.first == len(whole.placed) else f"{stretch.end - stretch.first} of"
    return f"{every} {counted(len(whole.placed), 'group')} are computed for {counted(stretch.rows, 'row')} of the batch at a time, which is faster here"


def _leaves_cache(whole: ExtractedGraph, target: Target) -> bool:
    """Whether the activations of all rows exceed the second caches: below that, parts gain nothing."""
    from ansor.graph.network import plan_memory

    return plan_memory(whole).size > target.hardware.caches.l2_bytes * target.threads > 0


def _name(whole: ExtractedGraph, target: Target, asked: RunOptions) -> str:
    """The key of the choice; empty if it is not kept."""
    words = words_of(whole, target, asked)
    if words is None:
        return ""
    recorded = asked.records is not None and Path(asked.records).exists()
    records = safe_files.digest(Path(asked.records).read_bytes()) if recorded and asked.records is not None else ""
    return kept_data.name_of((*words, processor_identity(), records))


def _measured(whole: ExtractedGraph, room: Room, target: Target, asked: RunOptions, reporter: Reporter) -> Stretch | None:
    """The stretch that saves most, if the network is faster with it than without."""
    from ansor.graph.rivals import faster
    from ansor.graph.row_parts import in_parts

    assert room.longest is not None
    longest = in_parts(whole, room.longest)
    kernels = _kernels([whole, longest.extracted], target, asked, reporter)
    network = _network(whole, kernels)
    with turn():
        saved, total = _saved(longest, network, _network(longest.extracted, kernels), target.threads)
        until = [0.0, *accumulate(saved)]
        within = [one for one in room.stretches() if room.longest.first <= one.first and one.end <= room.longest.end]
        best = max(within, key=lambda one: until[one.end] - until[one.first])
        if until[best.end] - until[best.first] < LEAST_GAIN * total:
            return None
        mixed = _network(in_parts(whole, best).extracted, kernels)
        return best if faster(mixed, network, whole.examples, target.threads, fewest=FEWEST_ROUNDS) else None


def _kernels(networks: Sequence[ExtractedGraph], target: Target, asked: RunOptions, reporter: Reporter) -> dict[str, GroupKernel]:
    """Kernels of the best recorded programs, or of those that the model picks, by the keys of the networks' tasks."""
    needed = {task.key: task for network in networks for task in network.tasks}
    tasks = [SearchTask(tensors=group.tensors, target=target, name=group.name) for group in needed.values()]
    states = recorded_states([(task, 1.0) for task in tasks], asked.records)
    pick_together(list(states.values()), asked.search.model, asked.search.seed)
    programs = [chosen(states[task.workload_key], asked.search.model, asked.search.seed) for task in tasks]
    return dict(zip(needed, map(NetworkKernel, built(tasks, programs, target.toolchain(), reporter.alarm)), strict=True))


def _network(extracted: ExtractedGraph, kernels: dict[str, GroupKernel]) -> CompiledNetwork:
    from ansor.graph.network import CompiledNetwork

    return CompiledNetwork(extracted, [kernels[task.key] for task in extracted.tasks])


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
