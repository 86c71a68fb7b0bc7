"""Times each step of a network within calls: in their order, with the cache contents of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork, Step

Clock = Callable[[], float]
MOST_CALLS = 512
"""The most calls whose times are remembered: of twice as many, every second one."""


@dataclass(frozen=True)
class CallSeconds:
    """Where the seconds of a call go: to each of the network's steps, and to the rest, which is checking and copying inputs and results. Taking the times is in
    neither."""

    steps: Sequence[float]
    rest: float

    @property
    def total(self) -> float:
        """Seconds of the call."""
        return sum(self.steps) + self.rest


class StepClock:
    """Calls a network and records how long each part of each call took. Mutable."""

    def __init__(self, network: CompiledNetwork, arguments: CallArguments, clock: Clock = time.perf_counter) -> None:
        self._network, self._arguments, self._clock = network, arguments, clock
        self._calls: list[CallSeconds] = []
        self._count, self._every = 0, 1

    def __call__(self) -> None:
        """One call."""
        steps: list[float] = []
        within = 0.0

        def run(runs: Sequence[Step]) -> None:
            nonlocal within
            begin = self._clock()
            steps.extend(_seconds(runs, self._clock))
            within = self._clock() - begin

        begin = self._clock()
        self._network.called(*self._arguments, run)
        found = CallSeconds(steps, self._clock() - begin - within)
        if self._count % self._every == 0:
            self._calls.append(found)
        self._count += 1
        if len(self._calls) >= 2 * MOST_CALLS:
            self._calls, self._every = self._calls[::2], 2 * self._every

    @property
    def seconds(self) -> CallSeconds:
        """The mean over the middle half of the calls, by their total: the sum of the medians of steps would be less than the median of calls, because in most
        calls some step is disturbed."""
        calls = sorted(self._calls, key=lambda one: one.total)
        middle = calls[len(calls) // 4 : len(calls) - len(calls) // 4]
        return CallSeconds([fmean(column) for column in zip(*(one.steps for one in middle), strict=True)], fmean(one.rest for one in middle))


def one_round(network: CompiledNetwork, examples: CallArguments | None, clock: Clock) -> list[float]:
    """Seconds of each step, once. Every round starts from the inputs, because later steps may have written over them."""
    network.fill(examples)
    return list(_seconds(network.runs, clock))


def low(times: Sequence[float]) -> float:
    """The lower quartile: other work on the machine can only increase times."""
    return sorted(times)[len(times) // 4]


def _seconds(runs: Sequence[Step], clock: Clock) -> Iterator[float]:
    for step in runs:
        timed = getattr(step, "timed", None)  # of several steps that run as one: their seconds
        if timed is not None:
            yield from timed()
        else:
            start = clock()
            step()
            yield clock() - start
