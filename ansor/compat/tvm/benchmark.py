"""Timing results of a function, as from `time_evaluator`. Source: TVM 0.9, `runtime.module.BenchmarkResult`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class BenchmarkResult:
    """results: seconds of one call, one per repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        row = "".join(f"{getattr(self, name) * 1e3:^14.4f}" for name in names)
        return "Execution time summary:\n" + "".join(f"{f'{name} (ms)':^14}" for name in names) + f"\n{row}\n"


def timed(
    call: Callable[[], None], number: int, repeat: int, least: float, rest: Callable[[], None], rest_every: int, clock: Callable[[], float] = time.perf_counter
) -> BenchmarkResult:
    """Call once untimed, then time `repeat` repeats of `number` calls. While a repeat takes less than `least` seconds, raise `number` and redo it.

    Calls `rest` after every `rest_every` repeats.
    """
    call()
    results = []
    for k in range(repeat):
        seconds = _together(call, number, clock)
        while seconds < least:
            number = int(max(least / (seconds / number) + 1 if seconds > 0 else 0, number * 1.618 + 1))
            seconds = _together(call, number, clock)
        results.append(seconds / number)
        if (k + 1) % rest_every == 0:
            rest()
    return BenchmarkResult(tuple(results))


def _together(call: Callable[[], None], number: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(number):
        call()
    return clock() - started
