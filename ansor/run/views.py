"""Who hears what a run says: the logger `ansor`, the caller's own functions, and a view where a person looks on. Without a view rich is not imported."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from ansor.run.tuning import OnProgress, Progress, Report, quiet
from ansor.support.notices import log, warn
from ansor.targets.base import Target

if TYPE_CHECKING:
    from types import TracebackType


class View(Protocol):
    """Shows a run while it goes on; used in a `with` statement."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def now(self, what: str) -> None:
        """What goes on before the first trial, or instead of trials."""

    def update(self, progress: Progress) -> None:
        """The state after a trial."""

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
class Voice:
    """What a run says, to everyone who listens. Lines are logged as INFO, those that must be seen as WARNING, what goes on as DEBUG.

    A line stays where the caller wants it: `report` gets it if given; else the view shows it, unless the logger prints it already.
    """

    view: View = field(default_factory=NoView)
    report: Report = quiet
    on_progress: OnProgress = quiet

    def say(self, line: str) -> None:
        """A line worth keeping."""
        self._tell(line, logging.INFO)

    def alarm(self, line: str) -> None:
        """A line that must be seen: where nobody listens and nothing is shown it is a warning."""
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
        """What goes on before the first trial, or instead of trials."""
        log.debug("%s", what)
        self.view.now(what)

    def update(self, progress: Progress) -> None:
        """The state after a trial."""
        self.view.update(progress)
        self.on_progress(progress)


def view_of(progress: bool | View | None, target: Target | None = None) -> View:
    """The view that `progress=` asks for: True shows one, False none, None one where a person looks on: on a terminal (stderr) and in a notebook.

    target: its peak is measured when the first trial is shown, to say the share that is reached; None says no share.
    """
    if progress is False or progress is None and not (sys.stderr.isatty() or _in_notebook()):
        return NoView()
    if not isinstance(progress, bool) and progress is not None:
        return progress
    if _in_notebook():
        from ansor.run.notebook import NotebookView

        return NotebookView(target)
    from rich.console import Console

    from ansor.run.progress import ProgressView

    return ProgressView(Console(stderr=True, highlight=False), target)


def _in_notebook() -> bool:
    """Whether a notebook shows what is displayed; rich knows the kinds of them, and is not asked where there is no IPython."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter
