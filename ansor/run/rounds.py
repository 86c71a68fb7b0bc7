"""Several rounds in flight, of one or several tasks: while devices measure one, the next is searched and built."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ansor.measure.failure import Failure
from ansor.measure.flight import Flight, Steps
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.search.tuner import Outcome, Pick


@dataclass
class Round:
    """A round of the task with index `index`.

    number: the number of the round in its task, from 1. searched: whether the search chose its programs. outcomes: what the tuner is told. count: measured
    trials. trouble: a failure of the machine. seconds: how long it took.
    """

    index: int
    picks: Sequence[Pick]
    number: int
    searched: bool
    outcomes: list[Outcome] = field(default_factory=list)
    count: int = 0
    trouble: Failure | None = None
    seconds: float = 0.0


Hear = Callable[[Round, Pick, Measurement], None]
Program = Candidate | Measurement
"""A program of a round: to measure, or a failure if it cannot be written as C."""


class RoundsInFlight:
    """Rounds that have started but not ended, in order of their start. Closing it stops the rest. `ending`: no more rounds are started.

    in_order: they end in that order too, and the trials of one are passed on when those before it have ended.
    """

    def __init__(self, measurer: Measurer, *, in_order: bool) -> None:
        self.ending = False
        self._measurer = measurer
        self._in_order = in_order
        self._under_way: list[_RoundInFlight] = []
        self._last = time.monotonic()

    @property
    def under_way(self) -> list[Round]:
        """Rounds that have not ended."""
        return [one.round for one in self._under_way]

    def busy(self, most: int) -> set[int]:
        """Tasks with `most` rounds under way."""
        counts = Counter(one.round.index for one in self._under_way)
        return {index for index, count in counts.items() if count >= most}

    @property
    def trials(self) -> int:
        """Trials of those rounds, measured or not, so that the number does not depend on the clock."""
        return sum(len(one.round.picks) for one in self._under_way)

    def start(self, round_: Round, programs: Iterable[Program], hear: Hear) -> Steps[None]:
        """Build and measure a round as its programs come, one a step. Passes on results that have arrived since, of other rounds too."""
        one = _RoundInFlight(round_, Flight(self._measurer, len(round_.picks)))
        self._under_way.append(one)
        for program in programs:
            one.take(program)
            self._advance(hear)
            yield ()
        one.complete()
        self._advance(hear)

    def next_ended(self, hear: Hear, stop: Callable[[], bool]) -> Steps[Round | None]:
        """The next round that ends. Passes on the trials of all rounds as they arrive. None when no round is left, or on `stop`."""
        while self._under_way and not stop():
            self._advance(hear)
            for one in self._turns:
                if one.over:
                    return self._ended(one)
            yield [one.flight for one in self._under_way]
        for one in self._under_way:
            one.pass_on(hear)
        return None

    @property
    def _turns(self) -> Sequence[_RoundInFlight]:
        return self._under_way[:1] if self._in_order else self._under_way

    def _advance(self, hear: Hear) -> None:
        for one in self._under_way:
            one.advance()
        for one in self._turns:
            one.pass_on(hear)

    def _ended(self, one: _RoundInFlight) -> Round:
        now = time.monotonic()
        one.round.seconds, self._last = now - self._last, now
        self._under_way.remove(one)
        return one.round

    def close(self) -> None:
        """Stop the remaining rounds."""
        if self._under_way:
            self._measurer.queue.stop()
        for one in self._under_way:
            one.flight.end()
        self._under_way = []


@dataclass(eq=False)
class _RoundInFlight:
    """taken: how many programs are known. part: those that are built next. failed: by position. arrived: measurements that were not passed on yet."""

    round: Round
    flight: Flight
    taken: int = 0
    part: list[Candidate] = field(default_factory=list)
    failed: dict[int, Measurement] = field(default_factory=dict)
    reported: int = 0
    arrived: list[Measurement] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.reported == len(self.round.picks)

    def take(self, program: Program) -> None:
        if isinstance(program, Measurement):
            self.failed[self.taken] = program
        else:
            self.part.append(program)
        self.taken += 1
        if self.taken < len(self.round.picks) and self.flight.is_part(len(self.part)):
            self.flight.add(self.part, last=False)
            self.part = []

    def complete(self) -> None:
        self.flight.add(self.part, last=True)

    def advance(self) -> None:
        if not self.flight.over:
            self.arrived += self.flight.advance()

    def pass_on(self, hear: Hear) -> None:
        while not self.over and (self.reported in self.failed or self.arrived):
            measurement = self.failed[self.reported] if self.reported in self.failed else self.arrived.pop(0)
            pick, self.reported = self.round.picks[self.reported], self.reported + 1
            hear(self.round, pick, measurement)
