"""A wire to a board whose memory is damaged silently: bits flip between trials, before a run and after it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ansor.measure.wire.wire import Abilities, Stopped, Traffic, Wire

Range = tuple[int, int]


class DamagedBoard:
    """Passes everything on. `before`, `after`: address ranges where bits flip once, before or after the next run; flips: how many."""

    name = "damaged"

    def __init__(self, inner: Wire, source: random.Random) -> None:
        self.inner, self._source = inner, source
        self.before: Sequence[Range] = ()
        self.after: Sequence[Range] = ()
        self.flips = 1
        self.runs = 0

    @property
    def abilities(self) -> Abilities:
        return self.inner.abilities

    @property
    def traffic(self) -> Traffic:
        return self.inner.traffic

    def read(self, address: int, size: int) -> bytes:
        return self.inner.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self.inner.write(address, data)

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        self.runs += 1
        self.before = self._damaged(self.before)
        stopped = self.inner.execute(entry, stop, seconds)
        self.after = self._damaged(self.after)
        return stopped

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        """The real wire stays open."""

    def _damaged(self, places: Sequence[Range]) -> Sequence[Range]:
        for _ in range(self.flips if places else 0):
            start, end = self._source.choice(places)
            address = self._source.randrange(start, end)
            self.inner.write(address, bytes([self.inner.read(address, 1)[0] ^ 1 << self._source.randrange(8)]))
        return ()
