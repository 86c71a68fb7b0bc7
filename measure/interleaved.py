"""Compares functions by timing them in turns.

Timings on a busy machine drift. So two functions run in turns, A B A B ..., and the result is the median of the ratios within each turn, with the range
of the middle 80 % of them.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TURN_SECONDS = 2e-3
"""Minimum length of a turn, so that neither clock nor call overhead matters."""
UNCOUNTED_TURNS = 3
FEWEST_TURNS = 5


@dataclass(frozen=True)
class Times:
    """Seconds of one call, one per turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over all turns."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times as fast the first is as the second: median over turns, and the range of the middle 80 %."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} .. {self.high:.2f})"


def ratio(ours: Times, theirs: Times) -> Ratio:
    """Above 1: ours is faster."""
    each = sorted(b / a for a, b in zip(ours.seconds, theirs.seconds, strict=True))
    return Ratio(statistics.median(each), each[len(each) // 10], each[-1 - len(each) // 10])


def interleaved(functions: Mapping[str, Callable[[], object]], turns: int, limit: float = math.inf, warm: float = 0.0) -> dict[str, Times]:
    """Time functions in turns: every turn runs each of them for about TURN_SECONDS, after three uncounted turns.

    Once `limit` seconds have passed, it stops after FEWEST_TURNS. `warm`: seconds of untimed calls before each function's turn.
    Otherwise, threads of the previous function may still spin on a core for milliseconds (PyTorch's do), a core that slept is slow for as long, and the first
    call starts with cold caches.
    """
    start = time.perf_counter()
    numbers = {name: _calls(function) for name, function in functions.items()}
    found: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(turns + UNCOUNTED_TURNS):
        if turn >= FEWEST_TURNS + UNCOUNTED_TURNS and time.perf_counter() - start > limit:
            break
        for name, function in functions.items():
            warmed = time.perf_counter() + warm
            while time.perf_counter() < warmed:
                function()
            seconds = timed(function, numbers[name])
            if turn >= UNCOUNTED_TURNS:
                found[name].append(seconds)
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}


def timed(function: Callable[[], object], number: int = 1) -> float:
    """Seconds per call: the mean over `number` calls in a row."""
    start = time.perf_counter()
    for _ in range(number):
        function()
    return (time.perf_counter() - start) / number


def _calls(function: Callable[[], object]) -> int:
    function()
    return max(1, round(TURN_SECONDS / max(timed(function), 1e-9)))
