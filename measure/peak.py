"""Measures this machine's peak in about a second: arithmetic in registers, and bandwidth from memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.toolchain import Compiler, cached_library, find_compiler

SOURCE = Path(__file__).with_name("peak.c")
CHAINS = 12
ROUNDS = 500_000  # about a millisecond: short enough that some burst is uninterrupted, even on a busy machine
LEAST_SECONDS = 0.25
READ_FLOATS = 1 << 25  # 128 MiB, larger than any cache


@dataclass(frozen=True)
class Peak:
    """gflops: fp32 multiply-adds of all threads, in 10^9 operations a second; gbytes: memory reads, in 10^9 bytes a second."""

    gflops: float
    gbytes: float
    threads: int


class Probe:
    """Loops that only the processor limits, or memory, for up to `threads` threads at once. Raises ToolchainError if they do not build."""

    def __init__(self, compiler: Compiler, vector_bytes: int, threads: int, mcpu: str) -> None:
        self._library = ctypes.CDLL(str(cached_library(compiler, "peak", SOURCE.read_text(), mcpu=mcpu, flags=(f"-DVECTOR_BYTES={vector_bytes}",))))
        self._library.ansor_peak_seconds.restype = self._library.ansor_read_seconds.restype = ctypes.c_double
        self._sinks = [np.zeros(64, dtype=np.float32) for _ in range(threads)]

    def arithmetic(self, thread: int, rounds: int = ROUNDS) -> float:
        """Seconds that a thread takes for `rounds` times CHAINS multiply-adds of vectors in registers."""
        return float(self._library.ansor_peak_seconds(ctypes.c_long(rounds), ctypes.c_void_p(self._sinks[thread].ctypes.data)))

    def reading(self, thread: int, data: NDArray[np.float32]) -> float:
        """Seconds that a thread takes to read an array."""
        pointer = ctypes.c_void_p(data.ctypes.data)
        return float(self._library.ansor_read_seconds(pointer, ctypes.c_long(data.size), ctypes.c_void_p(self._sinks[thread].ctypes.data)))


def measure_peak(compiler: Compiler | None = None, *, vector_bytes: int = 32, threads: int = 1, mcpu: str = "native") -> Peak:
    """Take the best of many short bursts on `threads` threads. Raises ToolchainError if the probe does not build."""
    probe = Probe(compiler or find_compiler(), vector_bytes, threads, mcpu)
    data = [np.ones(READ_FLOATS // threads, dtype=np.float32) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        flop = 2 * ROUNDS * CHAINS * (vector_bytes // 4) * threads
        bandwidth = sum(one.nbytes for one in data) / _best(pool, lambda k: probe.reading(k, data[k]), threads)
        return Peak(flop / _best(pool, probe.arithmetic, threads) / 1e9, bandwidth / 1e9, threads)


def _best(pool: ThreadPoolExecutor, work: Callable[[int], float], threads: int, bursts: int = 7) -> float:
    """The shortest time in which all threads finished a burst. Runs at least `bursts` bursts, and more until `LEAST_SECONDS` have passed."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < bursts or time.perf_counter() - start < LEAST_SECONDS:
        times.append(max(pool.map(work, range(threads))))
    return min(times)
