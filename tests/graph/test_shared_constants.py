"""Constants of other networks are found by their bytes, as long as one of these networks lives."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from ansor.graph.network_memory import NetworkMemory
from ansor.graph.shared_constants import LEAST, Array, SharedConstants

COUNT = LEAST // 4


def numbers(seed: int = 0, count: int = COUNT) -> Array:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def test_equal_bytes_are_found_in_any_shape_and_dtype() -> None:
    shared, known = SharedConstants(), numbers()
    shared.add([known])
    found = shared.find(known.copy().reshape(4, -1))
    assert found is not None and found.shape == (4, COUNT // 4) and np.shares_memory(found, known)
    bits = shared.find(known.view(np.int32).copy())
    assert bits is not None and bits.dtype == np.int32 and np.shares_memory(bits, known)


@pytest.mark.parametrize("place", [0, 1, COUNT // 2 + 1, COUNT - 1])
def test_a_single_other_bit_is_another_constant(place: int) -> None:
    shared, known = SharedConstants(), numbers()
    other = known.copy()
    other.view(np.int32)[place] ^= 1
    shared.add([known])
    assert shared.find(other) is None
    shared.add([other])
    for one in (known, other):
        found = shared.find(one.copy())
        assert found is not None and np.shares_memory(found, one)


def test_small_constants_are_not_shared() -> None:
    shared, known = SharedConstants(), numbers(count=COUNT - 1)
    shared.add([known])
    assert shared.find(known.copy()) is None


def test_nothing_is_kept_alive() -> None:
    shared, known = SharedConstants(), numbers()
    shared.add([known])
    copy = known.copy()
    del known
    gc.collect()
    assert shared.find(copy) is None


def test_nan_is_equal_to_itself() -> None:
    shared, known = SharedConstants(), np.full(COUNT, np.nan, np.float32)
    shared.add([known])
    assert shared.find(known.copy()) is not None


@pytest.mark.parametrize("first_dies", [True, False])
def test_a_constant_lives_with_any_of_its_networks(first_dies: bool) -> None:
    shared, owner = SharedConstants(), numbers()
    copy, networks = owner.copy(), [owner[:]]
    shared.add(networks)
    again = shared.find(copy)
    assert again is not None
    networks.append(again)
    shared.add([again])
    del again, networks[0 if first_dies else 1]
    gc.collect()
    found = shared.find(copy)
    assert found is not None and np.shares_memory(found, owner)


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    shared = SharedConstants()
    for seed in range(3):
        shared.add([numbers(seed)])
    gc.collect()
    shared.add([])
    assert not shared._known


def test_a_child_process_need_not_wait() -> None:
    shared = SharedConstants()
    with shared.lock:
        child = os.fork()
        if child == 0:
            thread = threading.Thread(target=shared.add, args=([numbers()],))
            thread.start()
            thread.join(10)
            os._exit(int(thread.is_alive()))
    assert os.waitpid(child, 0)[1] == 0


def test_what_another_network_has_is_read_there() -> None:
    shared = SharedConstants()
    memory = NetworkMemory(shared=shared)
    one = _constant(memory, numbers())
    shared.add(memory.constants)
    other = NetworkMemory(shared=shared)
    assert np.shares_memory(_constant(other, numbers()), one) and [each.ctypes.data for each in other.constants] == [one.ctypes.data]
    own = _constant(other, numbers(1))
    assert not np.shares_memory(own, one) and np.array_equal(own, numbers(1)) and own.ctypes.data % 64 == 0


def test_nothing_is_shared_unless_asked() -> None:
    memory = NetworkMemory()
    made = _constant(memory, numbers())
    assert memory.found(made) is None and not memory.constants


def test_strided_arrays_are_found_too() -> None:
    shared, known = SharedConstants(), np.ascontiguousarray(numbers().reshape(2, -1).T)
    shared.add([known])
    found = NetworkMemory(shared=shared).found(numbers().reshape(2, -1).T)
    assert found is not None and np.shares_memory(found, known) and found.shape == known.shape


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
@pytest.mark.parametrize("model", ["half", "returned"])
def test_constants_of_pytorch_and_of_results(model: str) -> None:
    import torch

    from ansor.graph.kernels import ReferenceKernel
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import extract

    torch.manual_seed(0)
    weight = torch.randn(256, 256)
    module = torch.nn.Linear(256, 256).eval().half() if model == "half" else torch.nn.Module()
    if model == "returned":
        module.register_buffer("weight", weight)
        module.forward = lambda x: (x + 1, module.weight)
    shared, alive = SharedConstants(), []
    for rows in (2, 1):
        x = torch.randn(rows, 256, dtype=torch.float16 if model == "half" else torch.float32)
        extracted = replace(extract(module, (x,)), shared=shared)
        network = CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])
        torch.testing.assert_close(network(x), module(x))
        shared.add(network.constants)
        alive.append(network)
    (one, *_), (other, *_) = (network.constants for network in alive)
    assert np.shares_memory(one, other)


def _constant(memory: NetworkMemory, values: Array) -> Array:
    return memory.constant(values.shape, values.dtype, lambda room: np.copyto(room, values))
