"""The health of a device, without any I/O: events in, a new value out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from ansor.measure.device import Observation
from ansor.measure.failure import LINK, Failure
from ansor.measure.machine_trouble import KIND as MACHINE

SLOWER = 0.15
"""How much slower than usual a canary may be before its device counts as slow."""

NOISE = 0.3
"""Spread of canaries (second largest minus second smallest, relative to the median) above which the device's costs mean nothing."""

KEPT = 12
FEWEST = 6  # canaries that a spread needs
MOST_LOST = 3
WELL_AGAIN = 2  # canaries in a row that are as usual

USUAL, OTHERS = "as usual", "as on the others of its key"
"""What the cost of a canary is compared with."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one canary on one device. recent: the last ones while all was well, the last one last. lowest: the lowest median of `recent` when these were at least
    FEWEST; 0 before."""

    recent: tuple[float, ...] = ()
    lowest: float = 0.0

    @property
    def usual(self) -> float:
        """What the canary costs; 0 before the first one. It never rises: a device that slows down little by little is found, too."""
        return self.lowest or (median(self.recent) if self.recent else 0.0)

    @property
    def spread(self) -> float:
        """See `NOISE`; 0 before the first FEWEST canaries."""
        if len(self.recent) < FEWEST:
            return 0.0
        ordered = sorted(self.recent)
        return (ordered[-2] - ordered[1]) / median(ordered)

    def followed_by(self, cost: float) -> Costs:
        """After another canary, while all is well."""
        found = replace(self, recent=(*self.recent, cost)[-KEPT:])
        if len(found.recent) < FEWEST or found.spread > NOISE:
            return found
        here = median(found.recent)
        return replace(found, lowest=min(self.lowest or here, here))


@dataclass(frozen=True, slots=True)
class Health:
    """costs: of the canary. lost: runs in a row that came to nothing by the device, or the way to it. suspended: why it gets no jobs; '' where it does.
    good: canaries in a row that were as usual since then."""

    costs: Costs = Costs()
    lost: int = 0
    suspended: str = ""
    good: int = 0

    def is_slow(self, cost: float) -> bool:
        """Whether a canary of this cost says that the device is slower than it was."""
        return self.costs.usual > 0 and cost > (1 + SLOWER) * self.costs.usual

    def after_run(self, outcome: Observation | Failure) -> Health:
        """A job ran."""
        if isinstance(outcome, Failure) and outcome.kind == MACHINE:
            return self.suspend(f"its machine is in trouble: {outcome.text}")
        if not (isinstance(outcome, Failure) and outcome.kind in LINK):
            return replace(self, lost=0)
        lost = self.lost + 1
        return replace(self, lost=lost) if lost < MOST_LOST else self.suspend(f"it lost {lost} runs in a row, the last one with {outcome}")

    def after_canary(self, cost: float | Failure, where: str = USUAL) -> Health:
        """The canary ran, several times where it was slow, and this is its lowest cost. where: what that is compared with."""
        if isinstance(cost, Failure):
            return self.suspend(f"its canary program failed: {cost}")
        if self.is_slow(cost):
            cure = "; if that is its speed from now on, restart its worker" if where == USUAL else ""
            found = f"a program of known cost takes {cost / self.costs.usual:.2f} times as long {where}"
            return self.suspend(f"{found}: throttled, or other work is running{cure}")
        if self.suspended:
            return self._recovering()
        costs = self.costs.followed_by(cost)
        if costs.spread > NOISE:
            noisy = self.suspend(f"the cost of one program varies by {costs.spread:.0%}: something else is running")
            return replace(noisy, costs=replace(costs, recent=()))
        return replace(self, costs=costs)

    def suspend(self, why: str) -> Health:
        """Suspended, for that reason."""
        return replace(self, suspended=why, good=0, lost=0)

    def _recovering(self) -> Health:
        good = self.good + 1
        return replace(self, good=good) if good < WELL_AGAIN else replace(self, suspended="", good=0)


def stands_out(usual: float, others: tuple[float, ...]) -> bool:
    """Whether a device is slower than others of its kind, by the usual cost of the canary: it may have been throttled from the start. False without others."""
    return bool(others) and usual > (1 + SLOWER) * median(others)
