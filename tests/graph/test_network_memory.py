"""Arrays of a network's memory are aligned, zero, and apart from each other; large ones lie in chunks for which large pages are asked."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor.graph.memory import ALIGNMENT
from ansor.graph.network_memory import CHUNK, LARGE_PAGE, NetworkMemory
from ansor.graph.shared_constants import LEAST

Array = NDArray[np.generic]


def address(array: Array) -> int:
    return int(array.ctypes.data)


def are_apart(arrays: list[Array]) -> bool:
    ranges = sorted((address(one), address(one) + one.nbytes) for one in arrays if one.nbytes)
    return all(end <= begin for (_, end), (begin, _) in zip(ranges, ranges[1:], strict=False))


@given(st.lists(st.integers(0, 3 * LEAST), max_size=12))
@settings(max_examples=50, deadline=None)
def test_arrays_are_aligned_zero_and_apart(sizes: list[int]) -> None:
    memory = NetworkMemory(LEAST)
    arrays: list[Array] = [memory.workspace, *(memory.zeros((size,), "uint8") for size in sizes)]
    assert all(address(one) % ALIGNMENT == 0 for one in arrays if one.nbytes) and not any(one.any() for one in arrays) and are_apart(arrays)
    assert [one.nbytes for one in arrays[1:]] == sizes


def test_arrays_have_the_shape_and_dtype_asked_for() -> None:
    memory = NetworkMemory()
    for shape, dtype in (((), "float32"), ((0, 3), "int64"), ((40, 1000), "float32"), ((2, 3), np.dtype("bool"))):
        found = memory.zeros(shape, dtype)
        assert found.shape == shape and found.dtype == np.dtype(dtype) and found.flags.c_contiguous and found.flags.writeable
    assert memory.workspace.nbytes == 0


def test_large_arrays_share_chunks_and_larger_ones_have_their_own() -> None:
    memory = NetworkMemory()
    first, second = memory.zeros((LEAST + 1,), "uint8"), memory.zeros((LEAST,), "uint8")
    assert address(second) - address(first) == LEAST + ALIGNMENT
    huge = memory.zeros((CHUNK + 1,), "uint8")  # its pages are never touched
    assert are_apart([first, second, huge, memory.zeros((LEAST,), "uint8")])


def test_several_threads_may_use_it() -> None:
    memory = NetworkMemory()
    with ThreadPoolExecutor(8) as pool:
        arrays = list(pool.map(lambda _: memory.zeros((LEAST,), "uint8"), range(200)))
    assert are_apart(arrays)


def test_arrays_outlive_the_memory_that_gave_them() -> None:
    memory = NetworkMemory()
    array = memory.zeros((LEAST,), "uint8")
    array[...] = 7
    del memory
    gc.collect()
    assert (array == 7).all()


def flags(place: int) -> list[str]:
    """The flags of the mapping that holds an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if "-" in name and not name.endswith(":"):
            begin, end = (int(one, 16) for one in name.split("-"))
            inside = begin <= place < end
        elif inside and name == "VmFlags:":
            return rest.split()
    return []


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this system has no large pages")
def test_large_pages_are_asked_for() -> None:
    large = NetworkMemory().zeros((LARGE_PAGE,), "uint8")
    assert address(large) % LARGE_PAGE == 0 and "hg" in flags(address(large))


def test_other_systems_use_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    memory = NetworkMemory()
    arrays = [memory.zeros((LEAST,), "uint8") for _ in range(3)]
    assert are_apart(arrays) and all(address(one) % ALIGNMENT == 0 for one in arrays)


LIMITED = f"""
import resource
from ansor.graph.network_memory import NetworkMemory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {CHUNK // 2}, used + {CHUNK // 2}))
print(NetworkMemory({LEAST}).zeros(({LARGE_PAGE},), "uint8").nbytes)
try:
    NetworkMemory({CHUNK})
except MemoryError:
    print("too large")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_limit_of_address_space_is_kept() -> None:
    """A small network needs no whole chunk, and one that is too large is told as other arrays are."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == [str(LARGE_PAGE), "too large"], done.stderr
