"""Measures this machine's peak in about a second: arithmetic in registers, and bandwidth from memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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


def measure_peak(compiler: Compiler | None = None, *, vector_bytes: int = 32, threads: int = 1, mcpu: str = "native") -> Peak:
    """Take the best of many short bursts on `threads` threads. Raises ToolchainError if the probe does not build."""
    chosen = compiler or find_compiler()
    library = ctypes.CDLL(str(cached_library(chosen, "peak", SOURCE.read_text(), mcpu=mcpu, flags=(f"-DVECTOR_BYTES={vector_bytes}",))))
    library.ansor_peak_seconds.restype = library.ansor_read_seconds.restype = ctypes.c_double
    sinks = [np.zeros(64, dtype=np.float32) for _ in range(threads)]
    data = [np.ones(READ_FLOATS // threads, dtype=np.float32) for _ in range(threads)]

    def arithmetic(k: int) -> float:
        return float(library.ansor_peak_seconds(ctypes.c_long(ROUNDS), ctypes.c_void_p(sinks[k].ctypes.data)))

    def reading(k: int) -> float:
        pointer = ctypes.c_void_p(data[k].ctypes.data)
        return float(library.ansor_read_seconds(pointer, ctypes.c_long(data[k].size), ctypes.c_void_p(sinks[k].ctypes.data)))

    with ThreadPoolExecutor(threads) as pool:
        flop = 2 * ROUNDS * CHAINS * (vector_bytes // 4) * threads
        return Peak(flop / _best(pool, arithmetic, threads) / 1e9, sum(d.nbytes for d in data) / _best(pool, reading, threads) / 1e9, threads)


def _best(pool: ThreadPoolExecutor, work: Callable[[int], float], threads: int, bursts: int = 7) -> float:
    """The shortest time in which all threads finished a burst. Runs at least `bursts` bursts, and more until `LEAST_SECONDS` have passed."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < bursts or time.perf_counter() - start < LEAST_SECONDS:
        times.append(max(pool.map(work, range(threads))))
    return min(times)
