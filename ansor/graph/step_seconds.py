"""Times each step of a network, in the order and with the cache contents of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork, Step, torch_threads

Clock = Callable[[], float]
ROUNDS = 15
LONGEST_SECONDS = 2.0
"""The time limit for all rounds together; there is always at least one round."""


def step_seconds(network: CompiledNetwork, examples: CallArguments | None, threads: int, clock: Clock = time.perf_counter) -> list[float]:
    """For each of `network.steps`, the lower quartile of its seconds over several rounds. PyTorch runs on `threads` threads."""
    rounds: list[list[float]] = []
    start = clock()
    with torch_threads(threads):
        while len(rounds) < ROUNDS and (not rounds or clock() - start < LONGEST_SECONDS):
            rounds.append(one_round(network, examples, clock))
    return [low(column) for column in zip(*rounds, strict=True)]


def one_round(network: CompiledNetwork, examples: CallArguments | None, clock: Clock) -> list[float]:
    """Seconds of each step, once. Every round starts from the inputs, because later steps may have written over them."""
    network.fill(examples)
    return [_seconds(step, clock) for _, step in network.steps]


def low(times: Sequence[float]) -> float:
    """The lower quartile: other work on the machine can only increase times."""
    return sorted(times)[len(times) // 4]


def _seconds(step: Step, clock: Clock) -> float:
    start = clock()
    step()
    return clock() - start
