"""An axis of a chart: positions of values, and tick marks."""

from __future__ import annotations

import math
from dataclasses import dataclass

WIDE = 8.0
"""An axis is logarithmic if the largest value is at least this many times the smallest."""

MARKS = 6
"""The most labelled marks."""


@dataclass(frozen=True)
class Axis:
    """From the value `low` at pixel `start` to `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The pixel of a value, to a tenth. Values outside map to the ends."""
        bounded = min(max(value, self.low), self.high)
        part = math.log(bounded / self.low) / math.log(self.high / self.low) if self.logarithmic else (bounded - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)

    @property
    def marks(self) -> tuple[float, ...]:
        """Round numbers within the range."""
        return _decades(self.low, self.high) if self.logarithmic else _even(self.low, self.high)


def cost_axis(low: float, high: float, start: float, end: float) -> Axis:
    """An axis for positive values, with a margin at both ends."""
    if high / low >= WIDE:
        return Axis(low / 1.15, high * 1.15, start, end, True)
    room = (high - low) * 0.08 or 0.05 * low
    return Axis(low - room, high + room, start, end)


def _decades(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten, with 2 and 5 times them if there are few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**exponent for exponent in exponents for factor in factors if low <= factor * 10.0**exponent <= high]
        if len(found) <= MARKS:
            return tuple(found)
    return tuple(found[:: math.ceil(len(found) / MARKS)])


def _even(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    least = (high - low) / MARKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    first = math.ceil(low / step - 1e-9)
    return tuple(k * step for k in range(first, math.floor(high / step + 1e-9) + 1))
