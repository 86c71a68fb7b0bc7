"""The time of a network's call by part: measured kernels, other kernels, steps in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.run.states import TaskState
from ansor.support.text import counted, format_seconds

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.graph.network import CompiledNetwork


@dataclass(frozen=True)
class Part:
    """Some steps of a network: their number, and their total seconds."""

    steps: int
    seconds: float


@dataclass(frozen=True)
class StepTimes:
    """A call's steps by kind: `measured` kernels have a recorded time, `others` have none, `torch` are steps in PyTorch."""

    measured: Part
    others: Part
    torch: Part

    def __str__(self) -> str:
        named = (("measured kernel", self.measured), ("unmeasured kernel", self.others), ("PyTorch step", self.torch))
        return ", ".join(f"{counted(part.steps, noun)} {format_seconds(part.seconds)}" for noun, part in named if part.steps)


def step_times(network: CompiledNetwork, inputs: ExampleInputs, states: Sequence[TaskState], threads: int) -> StepTimes:
    """Run the steps in order, as a call does, and time each: the lower quartile of several rounds. PyTorch uses `threads` threads."""
    from ansor.graph.export import split_inputs
    from ansor.graph.step_seconds import step_seconds

    seconds = step_seconds(network, split_inputs(inputs), threads)
    return _divided([(name, one) for (name, _), one in zip(network.steps, seconds, strict=True)], states)


def _divided(steps: Sequence[tuple[str, float]], states: Sequence[TaskState]) -> StepTimes:
    known = {state.task.name for state in states if state.cost is not None}
    torch = [seconds for name, seconds in steps if name.startswith("torch ")]
    measured = [seconds for name, seconds in steps if name in known]
    others = [seconds for name, seconds in steps if name not in known and not name.startswith("torch ")]
    return StepTimes(*(Part(len(part), sum(part)) for part in (measured, others, torch)))
