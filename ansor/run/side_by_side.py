"""Several runs in one thread: while the devices of one run programs, another searches, and all build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from ansor.errors import AnsorError
from ansor.measure.flight import Flight, any_can_advance, wait_for_any
from ansor.run.tuning import TuningRun

GaveUp = Callable[[int, AnsorError, int], None]
"""Called when a run has ended with an error: its number, the error, and how many runs go on."""


def run_side_by_side(runs: Sequence[TuningRun], gave_up: GaveUp) -> None:
    """Advance whichever run can go on, until all have ended. What each one proposes depends on its own results alone.

    A run that ends with an error of ours does not end the others; the first such error is raised when they have ended. Everything else, such as Ctrl-C, ends
    all of them at once.
    """
    waiting: dict[int, Sequence[Flight]] = dict.fromkeys(range(len(runs)), ())
    errors: list[AnsorError] = []
    with ExitStack() as opened:
        steps = [opened.enter_context(closing(run.steps())) for run in runs]
        while waiting:
            ready = [number for number, flights in waiting.items() if any_can_advance(flights)]
            if not ready:
                wait_for_any([one for flights in waiting.values() for one in flights])
            for number in ready:
                try:
                    waiting[number] = next(steps[number])
                except StopIteration:
                    del waiting[number]
                except AnsorError as error:
                    del waiting[number]
                    errors.append(error)
                    gave_up(number, error, len(waiting))
    if errors:
        raise errors[0]
