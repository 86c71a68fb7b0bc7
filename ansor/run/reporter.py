"""Where the messages of a run go: the logger `ansor`, the caller's own functions, and the progress view, if any."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from ansor.run.states import Progress
from ansor.support.notices import log, warn
from ansor.support.termination import Requested, Terminated

Report = Callable[[str], None]
OnProgress = Callable[[Progress], None]


def quiet(_: object) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Callbacks:
    """The callbacks of a run. say: lines worth reporting; alarm: lines that must be seen, by default like `say`; update: after every trial;
    now: the current activity before and between trials."""

    say: Report = quiet
    alarm: Report | None = None
    update: OnProgress = quiet
    now: Report = quiet

    def warn(self, line: str) -> None:
        """A line that must be seen."""
        (self.alarm or self.say)(line)


class View(Protocol):
    """Shows a run in progress; used in a `with` statement."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def now(self, what: str) -> None:
        """Show the current activity before the first trial, or when no trials run."""

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""

    def say(self, line: str) -> None:
        """A line that stays."""


class NoView:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def now(self, what: str) -> None:
        """Nothing."""

    def update(self, progress: Progress) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Reporter:
    """Sends the messages of a run to all listeners. Lines are logged as INFO, lines that must be seen as WARNING, the current activity as DEBUG.

    A permanent line goes to `report` if given; otherwise the view shows it, unless the logger already prints it.
    """

    view: View = field(default_factory=NoView)
    report: Report = quiet
    on_progress: OnProgress = quiet

    def say(self, line: str) -> None:
        """A line worth keeping."""
        self._tell(line, logging.INFO)

    def alarm(self, line: str) -> None:
        """A line that must be seen: without a `report` or a view, it becomes a warning."""
        if self.report is quiet and isinstance(self.view, NoView):
            warn(line)
            return
        self._tell(line, logging.WARNING)

    def _tell(self, line: str, level: int) -> None:
        log.log(level, "%s", line)
        if self.report is not quiet:
            self.report(line)
        elif not log.isEnabledFor(logging.INFO):
            self.view.say(line)

    def now(self, what: str) -> None:
        """Show the current activity before the first trial, or when no trials run."""
        log.debug("%s", what)
        self.view.now(what)

    def update(self, progress: Progress) -> None:
        """The state after a trial. A KeyboardInterrupt of `on_progress` becomes `Requested`."""
        self.view.update(progress)
        try:
            self.on_progress(progress)
        except Terminated:
            raise
        except KeyboardInterrupt as stopped:
            raise Requested(*stopped.args) from stopped

    @property
    def callbacks(self) -> Callbacks:
        """The callbacks for a run."""
        return Callbacks(self.say, self.alarm, self.update, self.now)
