"""The canaries of a station: one for each target and program, with its costs here and the shift that it will end (`ansor.farm.shifts`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.farm.health import Costs
from ansor.farm.shifts import KEPT
from ansor.measure.device import Job

WATCHES_KEPT = 32

Name = tuple[str, str]
"""A target, and the digest of a canary's text."""

NONE: Name = ("", "")
"""The name under which jobs without a canary run."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One canary. costs: as of its last use. since: jobs since it ran. shift: the number of its open shift, 0 for none."""

    job: Job | None = None
    costs: Costs = Costs()
    since: int = 0
    shift: int = 0


class Watches:
    """The canaries used last, and which shifts count. Shifts are numbered per device. If a canary is dropped, the results of its open shift do not count."""

    def __init__(self) -> None:
        self._watches: OrderedDict[Name, Watch] = OrderedDict({NONE: Watch()})
        self._shifts = 0
        self._judged: dict[int, bool] = {}

    @property
    def name(self) -> Name:
        """The name of the canary in use."""
        return next(reversed(self._watches))

    @property
    def current(self) -> Watch:
        """The canary in use."""
        return self._watches[self.name]

    @property
    def judged(self) -> Mapping[int, bool]:
        """Whether the results of each shift count, for the KEPT shifts that ended last."""
        return dict(self._judged)

    def use(self, name: Name, job: Job, costs: Costs) -> Costs:
        """Switch to a canary. costs: of the one in use until now. Returns the costs of the new one."""
        self._put(replace(self.current, costs=costs))
        self._watches[name] = replace(self._watches.get(name, Watch()), job=job)
        self._watches.move_to_end(name)
        while len(self._watches) > WATCHES_KEPT:
            _, old = self._watches.popitem(last=False)
            self._judge(old, counts=False)
        return self.current.costs

    def note_job(self) -> None:
        """Count a job."""
        self._put(replace(self.current, since=self.current.since + 1))

    def note_canary(self) -> None:
        """Count jobs from here on, as the canary runs now."""
        self._put(replace(self.current, since=0))

    def open_shift(self) -> int:
        """The number of the shift of a job that runs now; opens a shift if none is open."""
        if not self.current.shift:
            self._shifts += 1
            self._put(replace(self.current, shift=self._shifts))
        return self.current.shift

    def end_shift(self, *, counts: bool) -> None:
        """End the shift of the canary in use. counts: whether its results count."""
        self._judge(self.current, counts=counts)
        self._put(replace(self.current, shift=0))

    def drop_shifts(self) -> None:
        """End all shifts; none of them counts."""
        for name, watch in self._watches.items():
            self._judge(watch, counts=False)
            self._watches[name] = replace(watch, shift=0)

    def _judge(self, watch: Watch, *, counts: bool) -> None:
        if watch.shift:
            self._judged[watch.shift] = counts
        while len(self._judged) > KEPT:
            self._judged.pop(next(iter(self._judged)))

    def _put(self, watch: Watch) -> None:
        self._watches[self.name] = watch
