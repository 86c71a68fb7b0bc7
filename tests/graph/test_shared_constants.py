"""Constants of other networks are found by their bytes, as long as one of these networks lives."""

from __future__ import annotations

import gc

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
    found = shared.equal(known.copy().reshape(4, -1))
    assert found is not None and found.shape == (4, COUNT // 4) and np.shares_memory(found, known)
    bits = shared.equal(known.view(np.int32).copy())
    assert bits is not None and bits.dtype == np.int32 and np.shares_memory(bits, known)


@pytest.mark.parametrize("place", [0, 1, COUNT // 2 + 1, COUNT - 1])
def test_a_single_other_bit_is_another_constant(place: int) -> None:
    shared, known = SharedConstants(), numbers()
    other = known.copy()
    other.view(np.int32)[place] ^= 1
    shared.add([known])
    assert shared.equal(other) is None
    shared.add([other])
    for one in (known, other):
        found = shared.equal(one.copy())
        assert found is not None and np.shares_memory(found, one)


def test_small_constants_are_not_shared() -> None:
    shared, known = SharedConstants(), numbers(count=COUNT - 1)
    shared.add([known])
    assert shared.equal(known.copy()) is None


def test_nothing_is_kept_alive() -> None:
    shared, known = SharedConstants(), numbers()
    shared.add([known])
    copy = known.copy()
    del known
    gc.collect()
    assert shared.equal(copy) is None


def test_nan_is_equal_to_itself() -> None:
    shared, known = SharedConstants(), np.full(COUNT, np.nan, np.float32)
    shared.add([known])
    assert shared.equal(known.copy()) is not None


def test_a_constant_lives_with_any_of_its_networks() -> None:
    shared, first = SharedConstants(), numbers()
    shared.add([first])
    again = shared.equal(first.copy())
    assert again is not None
    shared.add([again])
    copy = first.copy()
    del first
    gc.collect()
    found = shared.equal(copy)
    assert found is not None and np.shares_memory(found, again)


def test_memory_of_what_is_found_is_used_again() -> None:
    shared = SharedConstants()
    memory = NetworkMemory(shared=shared)
    one = memory.complete(_filled(memory, numbers()))
    shared.add(memory.constants)
    other = NetworkMemory(shared=shared)
    packed = _filled(other, numbers())
    place = packed.ctypes.data
    assert np.shares_memory(other.complete(packed), one) and [each.ctypes.data for each in other.constants] == [one.ctypes.data]
    following = other.zeros((COUNT,), "float32")
    assert following.ctypes.data == place and not following.any()
    assert other.complete(_filled(other, numbers(1))).ctypes.data != place


def test_nothing_is_shared_unless_asked() -> None:
    memory = NetworkMemory()
    made = _filled(memory, numbers())
    assert memory.shared(made) is None and memory.complete(made) is made and not memory.constants


def test_strided_arrays_are_not_looked_for() -> None:
    shared, known = SharedConstants(), numbers()
    shared.add([known])
    assert NetworkMemory(shared=shared).shared(known.reshape(2, -1).T) is None


def _filled(memory: NetworkMemory, values: Array) -> Array:
    room = memory.zeros(values.shape, values.dtype)
    np.copyto(room, values)
    return room
