"""What the package reports by itself: lines in the logger `ansor`, and warnings for what users must notice."""

from __future__ import annotations

import logging
import sys
import warnings

from ansor.errors import AnsorWarning

log = logging.getLogger("ansor")
"""Silent until the caller configures logging, as in any library."""
log.addHandler(logging.NullHandler())


_OURS = ("ansor", "functools", "contextlib")
"""The package, and modules of Python that call it on its own behalf: cached properties, context managers."""


def warn(text: str) -> None:
    """Issue an AnsorWarning that names the first caller outside this package. Python shows the same text from the same line once."""
    warnings.warn(text, AnsorWarning, stacklevel=_levels_of_ours() + 1)


def _levels_of_ours() -> int:
    """The number of frames between `warn` and the first caller outside this package."""
    frame, levels = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, levels = frame.f_back, levels + 1
    return levels
