"""Our kernels and PyTorch's for the same groups, timed where they will run: in the network, alternately, with realistic caches.

Values matter: PyTorch's look-ups reject indices that are out of range, and its integer divisions reject zeros. So every run starts from the example inputs,
and all steps run in order on the actual values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork, torch_threads
from ansor.graph.step_seconds import Clock, low, one_round
from ansor.graph.tasks import ExtractedGraph

SECONDS_PER_GROUP = 0.05
ROUNDS = 30
ENOUGH_SECONDS, ENOUGH_ROUNDS = 2.0, 6  # after both, large networks wait no longer
MARGIN = 1.05  # how much faster PyTorch's kernel has to be: ours needs no PyTorch, and times vary
T = TypeVar("T")


@dataclass(frozen=True)
class Rivals:
    """Seconds that all uses of a task take in one run of the network: by our kernel, and by PyTorch's."""

    ours: float
    library: float

    @property
    def library_wins(self) -> bool:
        """True if PyTorch's kernel is clearly faster."""
        return self.library * MARGIN < self.ours


def rivals(
    extracted: ExtractedGraph, ours: CompiledNetwork, theirs: CompiledNetwork, threads: int, clock: Clock = time.perf_counter
) -> list[Rivals]:
    """Both times of each task, from the network that runs our kernels and the one that runs PyTorch's, on `threads` threads.

    Takes about `SECONDS_PER_GROUP` for each group, less for large networks (`ENOUGH_SECONDS`), or one run of both networks if that is longer.
    """
    runs = [lambda network=network: one_round(network, extracted.examples, clock) for network in (ours, theirs)]
    with torch_threads(threads):
        found = [[low(column) for column in zip(*rounds, strict=True)] for rounds in _in_turns(runs, SECONDS_PER_GROUP * len(extracted.placed), clock)]
    totals = [[0.0] * len(extracted.tasks) for _ in found]
    for seconds, total in zip(found, totals, strict=True):
        for placed, one in zip(extracted.placed, seconds, strict=True):
            if placed.task is not None:
                total[placed.task] += one
    return [Rivals(one, other) for one, other in zip(*totals, strict=True)]


def faster(one: CompiledNetwork, other: CompiledNetwork, examples: CallArguments | None, threads: int, clock: Clock = time.perf_counter) -> bool:
    """True if whole runs of `one` take less time than those of `other`: kernels that win alone may disturb each other, by their threads, for
    example. Takes as long as `rivals`."""
    runs = [lambda network=network: sum(one_round(network, examples, clock)) for network in (one, other)]
    with torch_threads(threads):
        first, second = _in_turns(runs, SECONDS_PER_GROUP * len(one.steps), clock)
    return low(first) < low(second)


def _in_turns(runs: Sequence[Callable[[], T]], budget: float, clock: Clock) -> tuple[list[T], ...]:
    """The results of the runs, repeated alternately for `budget` seconds or until that is enough.

    The first round only warms up, unless there is no time for another.
    """
    start = clock()
    found: tuple[list[T], ...] = tuple([run()] for run in runs)
    for number in range(ROUNDS):
        spent = clock() - start
        if spent >= budget or (spent >= ENOUGH_SECONDS and number >= ENOUGH_ROUNDS):
            break
        if number == 0:
            for one in found:
                one.clear()
        turns = list(zip(found, runs, strict=True))
        for results, run in turns if number % 2 else reversed(turns):
            results.append(run())
    return found
