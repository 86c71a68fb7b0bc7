"""The time of a network's call by part: measured kernels, other kernels, steps in PyTorch, and checking and copying inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.run.states import TaskState
from ansor.support.text import counted, format_seconds

if TYPE_CHECKING:
    from ansor.graph.step_seconds import CallSeconds

CALL_PART = "inputs and results"
"""The name of the part of a call that is in no step: checking and copying its inputs and results."""


@dataclass(frozen=True)
class Part:
    """Some steps of a network: their number, and their total seconds."""

    steps: int
    seconds: float


@dataclass(frozen=True)
class StepTimes:
    """A call's steps by kind: `measured` kernels have a recorded time, `others` have none, `torch` are steps in PyTorch.

    rest: seconds of checking and copying inputs and results.
    """

    measured: Part
    others: Part
    torch: Part
    rest: float

    def __str__(self) -> str:
        named = (("measured kernel", self.measured), ("unmeasured kernel", self.others), ("PyTorch step", self.torch))
        parts = [f"{counted(part.steps, noun)} {format_seconds(part.seconds)}" for noun, part in named if part.steps]
        return ", ".join((*parts, f"{CALL_PART} {format_seconds(self.rest)}"))

    @property
    def total(self) -> float:
        """Seconds of a call."""
        return self.measured.seconds + self.others.seconds + self.torch.seconds + self.rest


def step_times(names: Sequence[str], call: CallSeconds, states: Sequence[TaskState]) -> StepTimes:
    """The steps of a network by kind. names: of each step."""
    steps = list(zip(names, call.steps, strict=True))
    known = {state.task.name for state in states if state.cost is not None}
    torch = [seconds for name, seconds in steps if name.startswith("torch ")]
    measured = [seconds for name, seconds in steps if name in known]
    others = [seconds for name, seconds in steps if name not in known and not name.startswith("torch ")]
    return StepTimes(_part(measured), _part(others), _part(torch), call.rest)


def _part(seconds: Sequence[float]) -> Part:
    return Part(len(seconds), sum(seconds))
