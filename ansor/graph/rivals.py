"""Times two kernels for the same groups where they will run: in the network, alternately, with realistic cache contents.

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
ENOUGH_SECONDS, ENOUGH_ROUNDS = 1.0, 6  # timing of a large network ends after both
CLEAR_SECONDS, CLEAR_ROUNDS = 0.5, 4  # and after both of these, if the result is clear
MARGIN = 1.05  # how much faster PyTorch's kernel has to be: ours needs no PyTorch, and times vary
UNCLEAR = 0.02  # the share of a network's time that may be unclear at the end
T = TypeVar("T")


@dataclass(frozen=True)
class Rivals:
    """Seconds that all uses of a task take in one run of the network: by our kernel, and by another one, such as PyTorch's."""

    ours: float
    other: float

    def other_wins(self, margin: float = MARGIN) -> bool:
        """Whether the other one is faster by more than that."""
        return self.other * margin < self.ours


def rivals(
    extracted: ExtractedGraph, ours: CompiledNetwork, other: CompiledNetwork, threads: int, clock: Clock = time.perf_counter, *, fewest: int = 0
) -> list[Rivals]:
    """Both times of each task, from the network that runs our kernels and the one that runs the others, on `threads` threads.

    Takes about `SECONDS_PER_GROUP` for each group, less for large networks (`ENOUGH_SECONDS`) and clear results (`CLEAR_SECONDS`), or `fewest` runs of both
    networks after one that warms up, if that is longer; with 0, that one may be all.
    """
    runs = [lambda network=network: one_round(network, extracted.examples, clock) for network in (ours, other)]
    compared = [number for number, placed in enumerate(extracted.placed) if placed.task is not None]

    def clear(found: Sequence[Sequence[Sequence[float]]]) -> bool:
        columns = [list(zip(*rounds, strict=True)) for rounds in found]
        unclear = sum(low(columns[0][number]) for number in compared if not is_clear(columns[0][number], columns[1][number]))
        return unclear < UNCLEAR * sum(map(low, columns[0]))

    with torch_threads(threads):
        found = in_turns(runs, SECONDS_PER_GROUP * len(extracted.placed), clock, clear, fewest)
    totals = [[0.0] * len(extracted.tasks) for _ in found]
    for rounds, total in zip(found, totals, strict=True):
        for placed, column in zip(extracted.placed, zip(*rounds, strict=True), strict=True):
            if placed.task is not None:
                total[placed.task] += low(column)
    return [Rivals(*both) for both in zip(*totals, strict=True)]


def is_clear(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether more runs are unlikely to change which of two counts as faster: the fastest run of one takes clearly longer than the other's lower quartile.
    Theirs has to be faster by `MARGIN` to count as faster, and by as much again to be clearly faster."""
    return min(theirs) > low(ours) * MARGIN or low(theirs) * MARGIN**2 < min(ours)


def faster(
    one: CompiledNetwork, other: CompiledNetwork, examples: CallArguments | None, threads: int, clock: Clock = time.perf_counter, *, fewest: int = 0,
    budget: float | None = None,
) -> bool:  # fmt: skip
    """True if whole runs of `one` take less time than those of `other`: kernels that are faster on their own may slow each other down, for example by
    their threads. Takes as long as `rivals`, or at most about `budget` seconds."""
    runs = [lambda network=network: sum(one_round(network, examples, clock)) for network in (one, other)]
    with torch_threads(threads):
        first, second = in_turns(runs, SECONDS_PER_GROUP * len(one.steps) if budget is None else budget, clock, lambda found: is_clear(*found), fewest)
    return low(first) < low(second)


def in_turns(
    runs: Sequence[Callable[[], T]], budget: float, clock: Clock, clear: Callable[[tuple[list[T], ...]], bool], fewest: int = 0
) -> tuple[list[T], ...]:
    """The results of the runs, repeated alternately for `budget` seconds or until there are enough. clear: whether the results so far are clear.

    The first round only warms up, unless there is no time for another. There are at least `fewest` more.
    """
    start = clock()
    found: tuple[list[T], ...] = tuple([run()] for run in runs)
    for number in range(ROUNDS):
        spent = clock() - start
        enough = spent >= budget or (spent >= ENOUGH_SECONDS and number >= ENOUGH_ROUNDS)
        if number >= fewest and (enough or (spent >= CLEAR_SECONDS and number >= CLEAR_ROUNDS and clear(found))):
            break
        if number == 0:
            for one in found:
                one.clear()
        turns = list(zip(found, runs, strict=True))
        for results, run in turns if number % 2 else reversed(turns):
            results.append(run())
    return found
