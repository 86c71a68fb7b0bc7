"""The health of a device, as a value: each event gives a new one. Nothing here does any I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from ansor.measure.device import Observation
from ansor.measure.failure import LINK, Failure
from ansor.measure.machine_trouble import KIND as MACHINE

SLOWER = 0.15
"""How much slower than usual a canary may be before its device counts as slow."""

NOISE = 0.3
"""Spread of canaries (second largest minus second smallest, relative to the median) above which the device's costs are meaningless."""

KEPT = 12
FEWEST = 6  # canaries needed to compute a spread
MOST_LOST = 3
WELL_AGAIN = 2  # canaries in a row at the usual cost that end a suspension

USUAL, OTHERS = "as usual", "as on the others of its key"
"""What the cost of a canary is compared with."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one canary on one device. recent: the latest costs while the device was well, oldest first. lowest: the lowest median of `recent` so far; 0
    until `recent` has FEWEST costs."""

    recent: tuple[float, ...] = ()
    lowest: float = 0.0

    @property
    def usual(self) -> float:
        """What the canary usually costs; 0 before the first one. After FEWEST canaries it never rises, so that a gradual slowdown is found, too."""
        return self.lowest or (median(self.recent) if self.recent else 0.0)

    @property
    def spread(self) -> float:
        """See `NOISE`; 0 with fewer than FEWEST canaries."""
        if len(self.recent) < FEWEST:
            return 0.0
        ordered = sorted(self.recent)
        return (ordered[-2] - ordered[1]) / median(ordered)

    def followed_by(self, cost: float) -> Costs:
        """The costs with another canary's, if the device is well."""
        found = replace(self, recent=(*self.recent, cost)[-KEPT:])
        if len(found.recent) < FEWEST or found.spread > NOISE:
            return found
        here = median(found.recent)
        return replace(found, lowest=min(self.lowest or here, here))


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a device. costs: of its canary. lost: runs in a row that failed because of the device, or of the link to it. suspended: why the device gets
    no jobs; '' if it does. good: canaries in a row at the usual cost since the suspension."""

    costs: Costs = Costs()
    lost: int = 0
    suspended: str = ""
    good: int = 0

    def is_slow(self, cost: float) -> bool:
        """Whether a canary of this cost means that the device is slower than usual."""
        return self.costs.usual > 0 and cost > (1 + SLOWER) * self.costs.usual

    def after_run(self, outcome: Observation | Failure) -> Health:
        """The health after a job."""
        if isinstance(outcome, Failure) and outcome.kind == MACHINE:
            return self.suspend(f"its machine is in trouble: {outcome.text}")
        if not (isinstance(outcome, Failure) and outcome.kind in LINK):
            return replace(self, lost=0)
        lost = self.lost + 1
        return replace(self, lost=lost) if lost < MOST_LOST else self.suspend(f"it lost {lost} runs in a row, the last one with {outcome}")

    def after_canary(self, cost: float | Failure, where: str = USUAL) -> Health:
        """The health after a canary. cost: the lowest of several runs if the first one was slow. where: what the cost is compared with, USUAL or OTHERS."""
        if isinstance(cost, Failure):
            return self.suspend(f"its canary program failed: {cost}")
        if self.is_slow(cost):
            cure = "; if that is its speed now, restart its worker" if where == USUAL else ""
            found = f"a program of known cost takes {cost / self.costs.usual:.2f} times as long {where}"
            return self.suspend(f"{found}: it is throttled, or other work is running{cure}")
        if self.suspended:
            return self._recovering()
        costs = self.costs.followed_by(cost)
        if costs.spread > NOISE:
            noisy = self.suspend(f"the cost of one program varies by {costs.spread:.0%}: other work is running")
            return replace(noisy, costs=replace(costs, recent=()))
        return replace(self, costs=costs)

    def suspend(self, why: str) -> Health:
        """The health after the device is suspended for a reason."""
        return replace(self, suspended=why, good=0, lost=0)

    def _recovering(self) -> Health:
        good = self.good + 1
        return replace(self, good=good) if good < WELL_AGAIN else replace(self, suspended="", good=0)


def stands_out(usual: float, others: tuple[float, ...]) -> bool:
    """Whether the canary usually costs more on a device than on others of its kind: it may have been throttled from the start. False without others."""
    return bool(others) and usual > (1 + SLOWER) * median(others)
