"""If the first programs of a run all fail in the same way before they run, the compiler or the installation is at fault, and the run ends.

Until that is known, their failures are held back: recording programs as failed that never ran would exclude them forever.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ansor.errors import MeasureError
from ansor.measure.failure import Failure
from ansor.support.text import clip

ALIKE = 6
"""This many programs in a row failing for one reason is no coincidence: they differ in everything that a search can change."""

TOOLS = ("compile", "compile_timeout", "load", "reference", "does_not_fit")
"""Kinds of failures that occur before a program runs."""


class FirstFailures:
    """Holds back the first trials of a run while all fail in the same way in the tools. Write with `keep`; `settle` writes what was held back."""

    def __init__(self) -> None:
        self._cause: tuple[str, str] | None = None
        self._held: list[Callable[[], None]] = []
        self._open = True

    def keep(self, failure: Failure | None, write: Callable[[], None]) -> None:
        """Write a finished trial, or hold it back. Raises MeasureError, and drops what it held, once the first programs have all failed alike."""
        cause = None if failure is None or failure.kind not in TOOLS else (failure.kind, _without_names(failure.text))
        if not self._open or cause is None or (self._cause is not None and cause != self._cause):
            self.settle()
            write()
            return
        self._cause = cause
        self._held.append(write)
        if len(self._held) >= ALIKE:
            count, self._held = len(self._held), []
            assert failure is not None
            said = f"{failure.kind}: {clip(' '.join(failure.text.split()), 300)}"
            if failure.kind == "does_not_fit":
                raise MeasureError(f"the first {count} programs are too large for the device: {said}; {_smaller(failure.text)}, or another board")
            raise MeasureError(
                f"the first {count} programs all fail in the same way before they run, so the tools are at fault, not the programs: "
                f"{said}; `ansor doctor` checks compiler and machine; none of them was recorded"
            )

    def settle(self) -> None:
        """Write what was held back: the run ends, or continues normally."""
        self._open = False
        held, self._held = self._held, []
        for write in held:
            write()


def _smaller(text: str) -> str:
    """What to make smaller, by what the failure says does not fit."""
    if "stack" in text:
        return "choose smaller tiles (-stack= of the target bounds local buffers), a larger run.stack in the board's file"
    return "choose smaller sizes"


def _without_names(text: str) -> str:
    """The text without numbers and file names, which differ from program to program."""
    return re.sub(r"\S*/\S*|\d+", "", text)[:200]
