"""Progress in a notebook: one output that is updated during the run and stays when it ends."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Protocol, Self

from rich.console import Console, Group
from rich.text import Text

from ansor.run.progress import ProgressPanel
from ansor.run.states import Progress
from ansor.targets.base import Target

WIDTH = 100
SECONDS = 0.25
"""The time between updates: each is a message to the browser."""


class _Display(Protocol):
    def update(self, data: object, raw: bool) -> None: ...


class NotebookView:
    """Shows progress in the running cell. It needs no widgets, so that it works in every notebook and stays in a saved one."""

    def __init__(self, target: Target | None = None) -> None:
        self._panel = ProgressPanel(target)
        self._lines: list[str] = []
        self._display: _Display | None = None
        self._last = 0.0

    def __enter__(self) -> Self:
        display: Callable[..., _Display] = import_module("IPython.display").display
        self._display = display(self._data(over=False), raw=True, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._show(over=True)

    def now(self, what: str) -> None:
        """Show the current activity when no trials run."""
        self._panel.now(what)
        self._show()

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""
        self._panel.update(progress)
        if time.monotonic() - self._last >= SECONDS:
            self._show()

    def say(self, line: str) -> None:
        """Print a permanent line above the live ones."""
        self._lines.append(line)
        self._show()

    def _show(self, over: bool = False) -> None:
        self._last = time.monotonic()
        if self._display is not None:
            self._display.update(self._data(over), raw=True)

    def _data(self, over: bool) -> dict[str, str]:
        """The output by MIME type; only the permanent lines remain when the run is over."""
        console = Console(file=io.StringIO(), width=WIDTH, force_terminal=False, force_jupyter=False, highlight=False)
        with console.capture() as caught:
            console.print(Group(*(Text(line) for line in self._lines), *([] if over else [self._panel])))
        text = caught.get().rstrip()
        return {"text/plain": text, "text/html": f"<pre>{escape(text)}</pre>"}
