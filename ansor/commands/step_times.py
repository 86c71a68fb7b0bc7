"""The time of a network's call by part: measured kernels, other kernels, steps in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.run.states import TaskState
from ansor.support.text import counted, format_seconds


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


    @property
    def total(self) -> float:
        """Seconds of all steps."""
        return self.measured.seconds + self.others.seconds + self.torch.seconds


def step_times(names: Sequence[str], seconds: Sequence[float], states: Sequence[TaskState]) -> StepTimes:
    """The steps of a network by kind. names, seconds: of each step."""
    steps = list(zip(names, seconds, strict=True))
    known = {state.task.name for state in states if state.cost is not None}
    torch = [seconds for name, seconds in steps if name.startswith("torch ")]
    measured = [seconds for name, seconds in steps if name in known]
    others = [seconds for name, seconds in steps if name not in known and not name.startswith("torch ")]
    return StepTimes(*(Part(len(part), sum(part)) for part in (measured, others, torch)))
