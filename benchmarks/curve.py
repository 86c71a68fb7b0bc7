"""One run of a search: the time of its best program after each trial, and the time spent by then."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """One run. best: seconds of the best program after each trial; elapsed: seconds of wall time by then."""

    operator: str
    search: str
    seed: int
    target: str
    processor: str
    best: tuple[float, ...]
    elapsed: tuple[float, ...]

    def at_trial(self, count: int) -> float:
        """Seconds of the best program after this many trials."""
        return self.best[min(count, len(self.best)) - 1]

    def at(self, seconds: float) -> float:
        """Seconds of the best program after this much wall time; infinite before the first."""
        return min((best for best, elapsed in zip(self.best, self.elapsed, strict=True) if elapsed <= seconds), default=math.inf)
