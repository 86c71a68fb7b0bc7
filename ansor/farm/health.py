"""The health of a device, without any I/O: events in, a new value out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from ansor.measure.device import Observation
from ansor.measure.failure import LINK, Failure

SLOWER = 0.15
"""How much slower than usual a canary is, and the device with it."""

NOISE = 0.3
"""Spread of canaries (between the second and the last but one, by their median) beyond which costs of the device mean nothing."""

KEPT = 12
FEWEST = 6  # canaries that a spread is of
MOST_LOST = 3
WELL_AGAIN = 2  # canaries in a row that are as usual


@dataclass(frozen=True, slots=True)
class Health:
    """canaries: costs of the canary while all was well, the last one last. lost: runs in a row that came to nothing by the device, or the way to it.
    quarantined: why it gets no jobs; '' where it does. good: canaries in a row that were as usual since then."""

    canaries: tuple[float, ...] = ()
    lost: int = 0
    quarantined: str = ""
    good: int = 0

    @property
    def usual(self) -> float:
        """What the canary costs; 0 before the first one."""
        return median(self.canaries) if self.canaries else 0.0

    def is_slow(self, cost: float) -> bool:
        """Whether a canary of this cost says that the device is slower than it was."""
        return bool(self.canaries) and cost > (1 + SLOWER) * self.usual

    def after_run(self, outcome: Observation | Failure) -> Health:
        """A job ran."""
        if not (isinstance(outcome, Failure) and outcome.kind in LINK):
            return replace(self, lost=0)
        lost = self.lost + 1
        return replace(self, lost=lost) if lost < MOST_LOST else self.put_aside(f"it lost {lost} runs in a row, the last one with {outcome}")

    def after_canary(self, cost: float | None, where: str = "as usual") -> Health:
        """The canary ran, several times where it was slow, and this is its lowest cost; None: it failed. where: its cost is compared with, in words."""
        if cost is None:
            return self.put_aside("its canary program failed")
        if self.is_slow(cost):
            return self.put_aside(f"a program of known cost takes {cost / self.usual:.2f} times as long {where}: throttled, or other work is running")
        if self.quarantined:
            return self._recovering()
        found = replace(self, canaries=(*self.canaries, cost)[-KEPT:])
        if found._spread > NOISE:
            return replace(found.put_aside(f"the cost of one program varies by {found._spread:.0%}: something else is running"), canaries=())
        return found

    def put_aside(self, why: str) -> Health:
        """Quarantined, for that reason."""
        return replace(self, quarantined=why, good=0, lost=0)

    def _recovering(self) -> Health:
        good = self.good + 1
        return replace(self, good=good) if good < WELL_AGAIN else replace(self, quarantined="", good=0)

    @property
    def _spread(self) -> float:
        if len(self.canaries) < FEWEST:
            return 0.0
        ordered = sorted(self.canaries)
        return (ordered[-2] - ordered[1]) / median(ordered)


def stands_out(usual: float, others: tuple[float, ...]) -> bool:
    """Whether a device is slower than its like, by what the canary usually costs on each: it may have been throttled from the start. One alone cannot tell."""
    return bool(others) and usual > (1 + SLOWER) * median(others)
