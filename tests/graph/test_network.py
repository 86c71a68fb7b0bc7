from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from ansor.errors import AnsorWarning, ModelError
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork, plan_memory
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]
Reference = Callable[[ExtractedGraph], CompiledNetwork]


def test_structures_of_arguments_and_results(agrees: Agrees) -> None:
    def model(pair: tuple[torch.Tensor, torch.Tensor], *, flag: bool, table: dict[str, torch.Tensor]) -> dict[str, object]:
        x, y = pair
        return {"sum": x + y, "list": [x, table["k"] * 2, None], "flag": flag, "same": (x, x)}

    agrees(model, pair=(torch.randn(2), torch.randn(2)), flag=True, table={"k": torch.randn(3)})


def test_results_may_be_inputs_constants_or_the_same_array(agrees: Agrees) -> None:
    agrees(lambda x: (x, torch.arange(3), x.reshape(4), x + 1, (x + 1).reshape(4)), torch.randn(2, 2))


def test_inputs_nobody_reads(agrees: Agrees) -> None:
    agrees(lambda x, y: y + 1, torch.randn(2), torch.randn(3))


def test_numpy_in_numpy_out(reference: Reference) -> None:
    network = reference(extract(nn.ReLU(), torch.zeros(2, 2)))
    found = network(np.array([[1, -1], [2, -2]], np.float32))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, [[1, 0], [2, 0]])


def test_strided_arrays_and_gradients_are_taken(reference: Reference) -> None:
    network = reference(extract(nn.ReLU(), torch.zeros(2, 3)))
    given = torch.randn(3, 2, requires_grad=True)
    with pytest.warns(AnsorWarning, match="an input requires gradients, but a compiled network computes none"):
        found = network(given.T)
    assert torch.equal(found, torch.relu(given.T).detach())  # type: ignore[arg-type]
    network(given.T)  # said once
    with torch.no_grad():
        reference(extract(nn.ReLU(), torch.zeros(2, 3)))(given.T)  # nothing to say


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_networks_are_neither_copied_nor_pickled(reference: Reference, copied: Callable[[CompiledNetwork], object]) -> None:
    network = reference(extract(nn.ReLU(), torch.zeros(2)))
    with pytest.raises(ModelError, match="asked to copy or pickle a compiled network, .*compile the model again where it is needed: with records="):
        copied(network)


def test_results_are_the_callers_own(reference: Reference) -> None:
    network = reference(extract(nn.ReLU(), torch.zeros(2)))
    first = network(torch.tensor([1.0, 2.0]))
    network(torch.tensor([3.0, 4.0]))
    assert first.tolist() == [1.0, 2.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_negligible_weights_of_a_softmax_are_zero(dtype: torch.dtype, reference: Reference) -> None:
    """In double precision they are normal numbers."""
    scores = torch.tensor([[0.0, -100.0, -50.0, -90.0]], dtype=dtype)
    found = reference(extract(nn.Softmax(1), scores))(scores)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, scores.softmax(1))
    assert (found > 0).tolist() == [[True, dtype == torch.float64, True, dtype == torch.float64]]


def test_calls_from_several_threads_take_turns(reference: Reference) -> None:
    network = reference(extract(nn.Sequential(nn.ReLU(), nn.Softmax(0)), torch.zeros(50)))
    wrong = []

    def work(seed: int) -> None:
        given = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        for _ in range(20):
            if not torch.allclose(network(given), torch.relu(given).softmax(0)):  # type: ignore[arg-type]
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_within_a_call_is_refused(reference: Reference) -> None:
    """As a finalizer would make it: the memory of the outer call is in use."""
    network, values = reference(extract(nn.Linear(4, 4), torch.ones(1, 4))), torch.ones(1, 4)
    first = network(values)
    steps = network._run
    network._run = (*steps, lambda: network(values))
    for _ in range(2):
        with pytest.raises(ModelError, match="while it is running"):
            network(values)
    network._run = steps
    assert torch.equal(network(values), first)  # type: ignore[arg-type]


def test_errors_name_the_argument_and_what_was_expected(reference: Reference) -> None:
    network = reference(extract(nn.ReLU(), torch.zeros(2, 3)))
    with pytest.raises(ModelError, match=r"input being float32 of shape \(3, 2\); it was compiled for float32 of shape \(2, 3\)"):
        network(torch.zeros(3, 2))
    with pytest.raises(ModelError, match=r"input being float64 of shape \(2, 3\)"):
        network(np.zeros((2, 3)))
    with pytest.raises(ModelError, match="with a list as input; give a torch tensor"):
        network([1.0])
    with pytest.raises(ModelError, match=r"2 positional arguments.*input float32 of shape \(2, 3\)"):
        network(torch.zeros(2, 3), 1)
    with pytest.raises(ModelError, match=r"keywords \['y'\]"):
        network(y=torch.zeros(2, 3))
    fixed = reference(extract(lambda x, power: x**power, (torch.ones(2), 2)))
    with pytest.raises(ModelError, match="called with 3 where it was compiled with 2"):
        fixed(torch.ones(2), 3)
    with pytest.raises(ModelError, match="1 tasks from 0 kernels"):
        CompiledNetwork(extract(nn.ReLU(), torch.zeros(2)), [])


def test_memory_is_reused_and_aligned() -> None:
    extracted = extract(nn.Sequential(*(nn.Linear(256, 256) for _ in range(10))), torch.zeros(1, 256))
    assert plan_memory(extracted).size == 2 * 1024

    class Checking(ReferenceKernel):
        workspace_bytes = 100

        def prepare(self, arrays, memory, like=None):  # type: ignore[no-untyped-def]
            assert memory.workspace.nbytes >= 100
            assert all(array.ctypes.data % 64 == 0 and array.flags.c_contiguous for array in (*arrays, memory.workspace))
            return super().prepare(arrays, memory)

    network = CompiledNetwork(extracted, [Checking(task.tensors) for task in extracted.tasks])
    assert network.arena_bytes == 2048 and [name for name, _ in network.steps] == ["dense_1x256x256_bias"] * 10
