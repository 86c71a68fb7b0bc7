"""Batches in flight: several batches keep several devices busy while the search works on the next one.

The measurer's builder builds references and candidates in the order requested; they run as devices become free. Nothing here blocks:
the caller waits for what its flights await, and advances them. A measurer's flights belong to one thread. The first flight of a task builds its reference;
the task's other flights wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeAlias, TypeVar

from ansor.measure.builder import Built
from ansor.measure.measurer import Candidate, Key, Measurement, Measurer, Memory, Trial, text_key

FEWEST = 2
"""The fewest candidates that are worth a compiler call while a build job is idle."""


class Flight:
    """Builds the parts of a batch as they are added. Measurements come in its order, each program once, as in `Measurer.measure`. count: the most
    candidates of the batch."""

    def __init__(self, measurer: Measurer, count: int) -> None:
        self._measurer, self._count, self._complete = measurer, count, False
        self._references: dict[str, Future[Sequence[Built]]] = {}
        self._memory: Memory = {}
        self._futures: list[Future[Sequence[Built]]] = []
        self._to_build, self._built = deque[Future[Sequence[Built]]](), deque[Built]()
        self._waiting, self._submitted = deque[tuple[Key, Candidate]](), set[Key]()
        self._begun: deque[tuple[Key, Candidate, Trial]] = deque()
        self._prepared = False

    def is_part(self, count: int) -> bool:
        """Whether `count` candidates are enough to add at once: as many as share a compiler call, or fewer while a build job is idle."""
        builder = self._measurer.builder
        return count >= (FEWEST if builder.has_free_job else builder.group_size(self._count))

    @property
    def over(self) -> bool:
        """Whether all measurements were returned."""
        return self._complete and not self._waiting and not self._begun

    def add(self, part: Sequence[Candidate], *, last: bool) -> None:
        """Begin building the next candidates. last: no others follow."""
        builds = self._measurer.begin_references(part)
        self._references.update(builds)
        self._prepared = self._prepared and not builds
        keys = [text_key(one) for one in part]
        new = [key for key in keys if key not in self._submitted]  # the others are built, even if another flight measures them first
        self._memory = {**self._measurer.remembered(new), **self._memory}
        fresh = {key: one for key, one in zip(keys, part, strict=True) if key not in self._memory and key not in self._submitted}
        self._submitted.update(fresh)
        futures = self._measurer.builder.submit([one.source for one in fresh.values()], of=self._count)
        self._futures += futures
        self._to_build += futures
        self._waiting += zip(keys, part, strict=True)
        self._complete = last
        if self.over:
            self._clear()

    @property
    def awaits(self) -> Sequence[Future[Any]]:
        """Futures; one of them must be done before the flight can advance."""
        if not self._prepared:
            builds = self._references.values()
            return [*(one for one in builds if not one.done()), *builds][:1]
        running = self._begun[0][2].ran if self._begun else None
        return [*([running] if running is not None else []), *([self._to_build[0]] if self._waiting and self._to_build else [])]

    def advance(self) -> list[Measurement]:
        """Submit built programs and return finished measurements. Raises the errors of building and devices once earlier results were returned: ToolchainError,
        DeviceError, MachineTrouble."""
        if not self._prepare():
            return []
        self._hand_on()
        found: list[Measurement] = []
        while self._begun and self._begun[0][2].over and not (found and self._begun[0][2].raises):
            found.append(self._measurer.end_trial(*self._begun.popleft(), self._memory))
        if self.over:
            self._clear()
        return found

    def _prepare(self) -> bool:
        """Whether the references are ready."""
        if self._prepared or any(not one.done() for one in self._references.values()):
            return self._prepared
        for key, build in self._references.items():
            self._measurer.keep_reference(key, build)
        self._prepared = True
        return True

    def _hand_on(self) -> None:
        while self._waiting:
            key, one = self._waiting[0]
            if key in self._memory:
                trial = Trial()
            elif self._is_built():
                trial = self._measurer.begin_trial(one, self._built.popleft(), self._memory)
            else:
                return
            self._memory.setdefault(key, None)
            self._begun.append((*self._waiting.popleft(), trial))

    def _is_built(self) -> bool:
        while not self._built and self._to_build and self._to_build[0].done():
            self._built += self._to_build.popleft().result()
        return bool(self._built)

    def _clear(self) -> None:
        """Remove built programs; references stay."""
        for future in self._futures:
            self._measurer.builder.release(future.result())
        self._measurer.forget_accidents(self._memory)

    def end(self) -> None:
        """Stop building. The measurer's queue stops runs, for all flights at once."""
        self._measurer.stop_references(self._references)
        self._measurer.builder.stop(self._futures)
        self._measurer.forget_accidents(self._memory)


T = TypeVar("T")
Steps: TypeAlias = Generator[Sequence[Flight], None, T]
"""Work in steps: a generator that yields the flights it waits for, one of which must advance before it can go on; none, if others may go first."""


def any_can_advance(flights: Iterable[Flight]) -> bool:
    """Whether one of them can advance, or none has anything to wait for."""
    awaited = [one for flight in flights for one in flight.awaits]
    return not awaited or any(one.done() for one in awaited)


def wait_for_any(flights: Iterable[Flight]) -> None:
    """Block until one of them can advance."""
    awaited = [one for flight in flights for one in flight.awaits]
    if awaited:
        wait(awaited, return_when=FIRST_COMPLETED)
