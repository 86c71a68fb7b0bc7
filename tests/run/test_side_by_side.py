"""Runs that take turns: whoever can go on does, errors of one wait for the others, and everything is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ansor.errors import AnsorError, DeviceError
from ansor.measure.flight import Flight
from ansor.run.side_by_side import run_side_by_side
from ansor.run.tuning import TuningRun


class Run:
    """Notes its steps as (name, number), and waits in each for what `awaits` gives."""

    def __init__(self, name: str, steps: int, log: list[object], awaits: Callable[[int], Sequence[Future[Any]]] = lambda number: ()) -> None:
        self.name, self.count, self.log, self.awaits = name, steps, log, awaits
        self.error: BaseException | None = None

    def steps(self) -> Iterator[Sequence[Flight]]:
        try:
            for number in range(self.count):
                self.log.append((self.name, number))
                awaited = self.awaits(number)
                yield [cast(Flight, SimpleNamespace(awaits=awaited))] if awaited else ()
            if self.error is not None:
                raise self.error
        finally:
            self.log.append(f"{self.name} closed")


def together(*runs: Run, gave_up: Callable[[int, AnsorError, int], None] = lambda number, error, left: None) -> None:
    run_side_by_side(cast(Sequence[TuningRun], runs), gave_up)


def test_runs_that_wait_for_nothing_take_turns() -> None:
    log = list[object]()
    together(Run("a", 3, log), Run("b", 2, log))
    assert log == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), "b closed", "a closed"]


def test_a_run_that_waits_lets_the_others_go_on() -> None:
    """The second run ends what the first one waits for in its last step."""
    log, awaited = list[object](), Future[None]()

    def settle(number: int) -> Sequence[Future[Any]]:
        if number == 2:
            awaited.set_result(None)
        return ()

    together(Run("a", 1, log, lambda number: [awaited]), Run("b", 3, log, settle))
    assert log == [("a", 0), ("b", 0), ("b", 1), ("b", 2), "a closed", "b closed"]


def test_an_error_waits_for_the_others_and_the_first_is_raised() -> None:
    log, told = list[object](), list[tuple[int, str, int]]()
    runs = [Run("a", 1, log), Run("b", 4, log), Run("c", 2, log)]
    runs[0].error, runs[2].error = DeviceError("first"), DeviceError("second")
    with pytest.raises(DeviceError, match="first"):
        together(*runs, gave_up=lambda number, error, left: told.append((number, str(error), left)))
    assert told == [(0, "first", 2), (2, "second", 1)] and log[-2:] == [("b", 3), "b closed"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("a defect")])
def test_everything_else_ends_all_at_once(error: BaseException) -> None:
    log = list[object]()
    runs = [Run("a", 9, log), Run("b", 1, log)]
    runs[1].error = error
    with pytest.raises(type(error)):
        together(*runs)
    assert log == [("a", 0), ("b", 0), ("a", 1), "b closed", "a closed"]
