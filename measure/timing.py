"""How often to run a candidate: warm up, repeat, and stop early if it is clearly slower than the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from statistics import median

from ansor.errors import ArgumentError

COLD_CALL_COUNTS = 0.05  # seconds: beyond this, cold caches no longer explain a slow first call
SINGLE_CALL_COUNTS = 1e-3  # seconds: below this, a page fault or an interrupt may explain slow single calls
SINGLE_CALLS = 3  # the most single calls timed before a program counts as slow: one took up to five times as long as the program did later


def _check_numbers(options: Stopping | TimingOptions) -> None:
    values = {one.name: getattr(options, one.name) for one in fields(options) if one.name != "stopping"}
    wrong = [name for name, value in values.items() if isinstance(value, bool) or not isinstance(value, Real)]
    if wrong:
        raise ArgumentError(f"{type(options).__name__}: {wrong[0]}={values[wrong[0]]!r} is not a number; give a number")


@dataclass(frozen=True, slots=True)
class Stopping:
    """How the best so far affects timing. A candidate more than `cut_ratio` times slower is stopped early; one whose median is at most `contender_ratio` times
    the best is timed `contender_repeats` more times."""

    cut_ratio: float = 3.0
    contender_ratio: float = 1.1
    contender_repeats: int = 9

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.cut_ratio <= 1 or self.contender_repeats < 0:
            raise ArgumentError(f"Stopping: cut_ratio > 1 and contender_repeats >= 0 are needed: {self}")


@dataclass(frozen=True, slots=True)
class TimingOptions:
    """How one candidate is timed. Each of `repeat` results is the mean of `number` calls in a row, or more of them
    until `min_repeat_ms` have passed. stopping: when to take fewer results, or more."""

    number: int = 1
    repeat: int = 3
    min_repeat_ms: float = 5.0
    stopping: Stopping = Stopping()
    flush_bytes: int = 0  # > 0: write this many bytes before each repeat, and time single calls (cold caches)
    cooldown_seconds: float = 0.0  # rest after each candidate
    timeout_seconds: float = 10.0  # wall time of all runs of one candidate, verification included
    memory_bytes: int = 2 << 30  # memory a candidate may take beyond its arguments

    def __post_init__(self) -> None:
        if not isinstance(self.stopping, Stopping):
            raise ArgumentError(f"TimingOptions: stopping={self.stopping!r} is invalid; give a Stopping")
        _check_numbers(self)
        if self.number < 1 or self.repeat < 1 or self.timeout_seconds <= 0:
            raise ArgumentError(f"TimingOptions: number, repeat >= 1 and timeout_seconds > 0 are needed: {self}")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call, one per repeat; `cut_short`: a single coarse time of a clearly slow candidate."""

    seconds: tuple[float, ...]
    cut_short: bool = False


def time_repeats(
    run: Callable[[int], float],
    options: TimingOptions,
    *,
    first_seconds: float,
    best_seconds: float | None = None,
    flush: Callable[[], None] = lambda: None,
    before_second: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> Timing:
    """Time a candidate; `run(number)` makes that many calls and returns their seconds; `first_seconds`: its very first call;
    `before_second` is called once before the second call, if there is one."""
    cut = float("inf") if best_seconds is None else best_seconds * options.stopping.cut_ratio
    if first_seconds > max(cut, COLD_CALL_COUNTS):
        return Timing((first_seconds,), cut_short=True)
    before_second()
    deadline = clock() + 0.7 * options.timeout_seconds
    warm = _warm_seconds(run, max(cut, SINGLE_CALL_COUNTS))
    if warm > max(cut, SINGLE_CALL_COUNTS):
        return Timing((warm,), cut_short=True)
    number = 1 if options.flush_bytes else options.number
    wanted = 0.0 if options.flush_bytes else options.min_repeat_ms / 1e3
    if warm > 0:
        number = max(number, int(1.1 * wanted / warm) + 1 if wanted else 1)
    seconds: list[float] = []
    for repeat in range(options.repeat + options.stopping.contender_repeats):
        if repeat == options.repeat and best_seconds is not None and median(seconds) > options.stopping.contender_ratio * best_seconds:
            break
        flush()
        total = run(number)
        while total < wanted and clock() < deadline:
            number = int(max(wanted / (total / number) + 1 if total > 0 else 0, number * 1.618 + 1))
            total = run(number)
        seconds.append(total / number)
        if seconds[0] > cut:
            return Timing((seconds[0],), cut_short=True)
        if clock() > deadline:
            break
    return Timing(tuple(seconds))


def _warm_seconds(run: Callable[[int], float], most: float) -> float:
    """Seconds of a call; the least of a few calls if the first takes longer than `most`."""
    warm = run(1)
    for _ in range(SINGLE_CALLS - 1):
        if warm <= most:
            break
        warm = min(warm, run(1))
    return warm


def relative_spread(seconds: Sequence[float]) -> float:
    """(90th - 10th percentile) / median of repeated times of one thing: smaller differences mean nothing."""
    ordered = sorted(seconds)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return (high - low) / median(ordered)
