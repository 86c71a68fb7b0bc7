"""Times each step of a network within calls: in their order, with the cache contents of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork, Step

Clock = Callable[[], float]
MOST_ROUNDS = 512
"""The most calls whose times are remembered: of twice as many, every second one."""


@runtime_checkable
class TimedSteps(Protocol):
    """Several steps that run as one."""

    def timed(self) -> list[float]:
        """Run them; returns the seconds of each."""
        ...


class StepClock:
    """Makes calls of a network, and remembers the seconds of each of its steps in all of them. Mutable."""

    def __init__(self, network: CompiledNetwork, examples: CallArguments | None, clock: Clock = time.perf_counter) -> None:
        """examples: the arguments of the calls; None for zeros."""
        self._network, self._examples, self._clock = network, examples, clock
        self._rounds: list[list[float]] = []
        self._count, self._every = 0, 1

    def __call__(self) -> None:
        """One call."""
        seconds = one_round(self._network, self._examples, self._clock)
        if self._count % self._every == 0:
            self._rounds.append(seconds)
        self._count += 1
        if len(self._rounds) >= 2 * MOST_ROUNDS:
            self._rounds, self._every = self._rounds[::2], 2 * self._every

    @property
    def seconds(self) -> list[float]:
        """For each of the network's `steps`, the mean over the middle half of the calls, by their total: the sum of the medians of steps would be less than
        the median of calls, because in most calls some step is disturbed."""
        rounds = sorted(self._rounds, key=sum)
        middle = rounds[len(rounds) // 4 : len(rounds) - len(rounds) // 4]
        return [sum(column) / len(middle) for column in zip(*middle, strict=True)]


def one_round(network: CompiledNetwork, examples: CallArguments | None, clock: Clock) -> list[float]:
    """Seconds of each step, once. Every round starts from the inputs, because later steps may have written over them."""
    network.fill(examples)
    return [seconds for step in network.runs for seconds in _seconds(step, clock)]


def low(times: Sequence[float]) -> float:
    """The lower quartile: other work on the machine can only increase times."""
    return sorted(times)[len(times) // 4]


def _seconds(step: Step, clock: Clock) -> list[float]:
    if isinstance(step, TimedSteps):
        return step.timed()
    start = clock()
    step()
    return [clock() - start]
