"""Times each step of a network within calls: in their order, with the cache contents of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Protocol, runtime_checkable

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork, Step, torch_threads

Clock = Callable[[], float]
ROUNDS = 15
LONGEST_SECONDS = 2.0
"""The time limit for all rounds together; there is always at least one round."""


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

    def __call__(self) -> None:
        """One call."""
        self._rounds.append(one_round(self._network, self._examples, self._clock))

    @property
    def seconds(self) -> list[float]:
        """For each of the network's `steps`, the median over the calls."""
        return [median(column) for column in zip(*self._rounds, strict=True)]


def step_seconds(network: CompiledNetwork, examples: CallArguments | None, threads: int, clock: Clock = time.perf_counter) -> list[float]:
    """For each of `network.steps`, the median of its seconds over several calls. PyTorch runs on `threads` threads."""
    steps, start = StepClock(network, examples, clock), clock()
    with torch_threads(threads):
        steps()
        for _ in range(ROUNDS - 1):
            if clock() - start >= LONGEST_SECONDS:
                break
            steps()
    return steps.seconds


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
