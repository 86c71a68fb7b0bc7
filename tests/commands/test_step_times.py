"""Where the time of a network's call goes."""

from __future__ import annotations

import pytest
import torch

import ansor
from ansor.commands.step_times import Part, StepTimes, step_times
from ansor.graph.step_seconds import StepClock
from ansor.run.states import Best, TaskState


def test_the_parts_are_named_with_their_numbers_and_those_that_are_not_there_are_left_out() -> None:
    assert str(StepTimes(Part(5, 49e-6), Part(1, 3e-4), Part(0, 0.0), 2e-6)) == "5 measured kernels 49 us, 1 unmeasured kernel 300 us, inputs and results 2 us"
    assert str(StepTimes(Part(0, 0.0), Part(0, 0.0), Part(2, 1e-3), 2e-6)) == "2 PyTorch steps 1 ms, inputs and results 2 us"


class Upsampled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(torch.cummax(self.first(x), 1).values.relu())
        return found


@pytest.mark.compiler
def test_every_step_is_in_one_part() -> None:
    states: list[TaskState] = []
    inputs = (torch.randn(2, 8, requires_grad=True),)
    with pytest.warns(ansor.AnsorWarning, match="cummax"):
        network = ansor.compile(Upsampled().eval(), inputs, "cpu -threads=1", library=False, progress=False, on_tasks=states.extend)
    first = states[0]
    first.best = Best(first.task.spaces[0].sketch, (), 1e-6)
    steps = StepClock(network, (inputs, {}))
    with torch.no_grad():
        steps()
    found = step_times([name for name, _ in network.steps], steps.seconds, states)
    assert (found.measured.steps, found.torch.steps) == (1, 1)
    assert found.measured.steps + found.others.steps + found.torch.steps == len(network.steps)
    assert all(part.seconds > 0 for part in (found.measured, found.others, found.torch))
    assert found.rest > 0 and found.total == sum(part.seconds for part in (found.measured, found.others, found.torch)) + found.rest
