"""Live networks whose own steps run by one call of C: the same bytes, the same refusals, PyTorch's steps between them, and nothing kept that is not needed."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.errors import OutOfRangeError
from ansor.graph.network import CompiledNetwork
from ansor.graph.step_seconds import MOST_CALLS, CallSeconds, StepClock
from ansor.graph.tasks import extract
from ansor.networks.network_kernel import NetworkKernel
from ansor.networks.step_run import StepRun, joined
from ansor.run.kernels import built
from ansor.run.states import Best
from ansor.schedule.sketch import Sketch
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from tests.networks.exported import threads_of

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


class Words(nn.Module):
    """Two tables, the second looked up with what the caller gives, too."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.classes = nn.Embedding(20, 8), nn.Embedding(5, 8), nn.Linear(8, 3)

    def forward(self, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.classes(self.words(words) + self.places(places)), -1)


class Mixed(nn.Module):
    """What we have no kernels for lies between what we have."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        middle = torch.softmax(self.first(x), -1).half() * 2
        return torch.softmax(self.last(middle.float()), -1)


def indices(*values: int) -> torch.Tensor:
    return torch.tensor([values])


def many() -> tuple[torch.Tensor, torch.Tensor]:
    """Words and places of a text that is long enough for threads to pay."""
    count = torch.arange(20000)
    return count[None] % 20, count[None] % 5


def one_by_one(network: CompiledNetwork, *given: torch.Tensor) -> bytes:
    """The result of the steps, each a call of its own."""
    network.fill((given, {}))
    for _, step in network.steps:
        step()
    found = network.layout().results
    assert isinstance(found, np.ndarray)
    return found.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_all_steps_are_one_call_with_the_same_bytes(threads: int) -> None:
    given = many() if threads > 1 else (indices(1, 19, 3), indices(0, 4, 2))
    network = ansor.compile(Words().eval(), given, f"cpu -threads={threads}", library=False)
    assert threads_of(network) == threads and len(network.steps) > 1 and [type(step) for step in network._run] == [StepRun]
    assert network(*given).numpy().tobytes() == one_by_one(network, *given)  # type: ignore[attr-defined]


def test_indices_out_of_range_are_refused_by_the_look_up_that_reads_them() -> None:
    network = ansor.compile(Words().eval(), (indices(1, 2), indices(1, 2)), "cpu -threads=1", library=False)
    for given, row, rows in (((indices(1, 20), indices(0, 1)), 20, 20), ((indices(1, 2), indices(-1, 1)), -1, 5)):
        with pytest.raises(OutOfRangeError, match=f"looks up row {row} of a table of {rows} rows"):
            network(*given)
    assert network(indices(1, 2), indices(0, 1)).shape == (1, 2, 3)  # type: ignore[attr-defined]


def test_steps_of_pytorch_stay_between() -> None:
    given = torch.randn(2, 8)
    with pytest.warns(ansor.AnsorWarning, match="run in PyTorch"):
        network = ansor.compile(Mixed().eval(), (given,), "cpu -threads=1", library=False)
    in_torch = [name.startswith("torch ") for name, _ in network.steps]
    kinds = [isinstance(step, StepRun) for step in network._run]
    assert kinds[0] and kinds[-1] and len(kinds) == 2 + sum(in_torch)
    assert network(given).numpy().tobytes() == one_by_one(network, given)  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_calls_it() -> None:
    given = many()
    network = ansor.compile(Words().eval(), given, "cpu -threads=2", library=False)
    assert threads_of(network) == 2
    wanted = network(*given).numpy().tobytes()  # type: ignore[attr-defined]
    child = os.fork()
    if child == 0:
        os._exit(network(*given).numpy().tobytes() != wanted)  # type: ignore[attr-defined]
    assert os.waitpid(child, 0)[1] == 0


def test_neither_examples_nor_constants_as_they_were_are_kept() -> None:
    given = (indices(1, 2), indices(1, 2))
    extracted = extract(Words().eval(), given)
    tasks = [SearchTask(tensors=group.tensors, target=parse_target("cpu -threads=1"), name=group.name) for group in extracted.tasks]
    kernels = [NetworkKernel(kernel) for kernel in built(tasks, [Best(Sketch(task.dag), (), 1.0) for task in tasks])]
    network = CompiledNetwork(extracted, kernels)
    network.run_by(joined)
    held: list[object] = [extracted.graph, given[0], *extracted.graph.constants.values()]
    gone = [weakref.ref(one) for one in held]
    del held
    del extracted, given
    gc.collect()
    assert len(gone) > 4 and not [one for one in gone if one() is not None]
    assert network(indices(1, 2), indices(0, 1)).shape == (1, 2, 3)  # type: ignore[attr-defined]


def test_the_example_inputs_of_compile_are_let_go() -> None:
    example = torch.randn(2, 8)
    network = ansor.compile(nn.Linear(8, 4).eval(), (example,), "cpu -threads=1")
    gone = weakref.ref(example)
    del example
    gc.collect()
    assert gone() is None and network.steps


def test_steps_are_timed_within_a_call_with_the_same_bytes() -> None:
    given = indices(1, 19, 3), indices(0, 4, 2)
    network = ansor.compile(Words().eval(), given, "cpu -threads=1", library=False)
    (run,) = network.runs
    assert isinstance(run, StepRun)
    wanted = network(*given).numpy().tobytes()  # type: ignore[attr-defined]
    network.fill((given, {}))
    seconds = run.timed()
    assert len(seconds) == len(network.steps) and min(seconds) >= 0.0
    found = network.layout().results
    assert isinstance(found, np.ndarray) and found.tobytes() == wanted
    network.fill(((indices(1, 20, 3), indices(0, 4, 2)), {}))
    with pytest.raises(OutOfRangeError):
        run.timed()


def test_a_mixed_network_has_a_time_for_each_step() -> None:
    given = torch.randn(2, 8)
    with pytest.warns(ansor.AnsorWarning):
        network = ansor.compile(Mixed().eval(), given, "cpu -threads=1", library=False)
    assert len(network.runs) < len(network.steps)
    steps = StepClock(network, ((given,), {}))
    for _ in range(5 * MOST_CALLS):
        steps()
    assert len(steps.seconds.steps) == len(network.steps) and len(steps._calls) < 2 * MOST_CALLS


class FakeCall:
    """A network whose clock only its parts advance: 3 s before the steps, 4 s after them; a step of 2 s, and two of 5 and 6 s that run as one."""

    def __init__(self) -> None:
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def timed(self) -> list[float]:
        self.wait(5.0 + 6.0 + 0.5)  # half a second to take the times
        return [5.0, 6.0]

    def called(self, args: tuple[object, ...], kwargs: dict[str, object], run: Callable[[Sequence[object]], None]) -> None:
        self.wait(3.0)
        run([lambda: self.wait(2.0), self])
        self.wait(4.0)


def test_what_is_in_no_step_is_the_rest_without_the_time_of_the_clock() -> None:
    call = FakeCall()
    steps = StepClock(call, ((), {}), lambda: call.now)  # type: ignore[arg-type]  # only `called` is used
    steps()
    steps()
    assert steps.seconds == CallSeconds([2.0, 5.0, 6.0], 7.0) and steps.seconds.total == 20.0
