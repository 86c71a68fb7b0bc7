"""Our optional helper libraries for speed, with slower fallbacks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from ansor.errors import MachineTrouble, ToolchainError
from ansor.support.notices import warn


def loaded_if_built(build: Callable[[], Path], otherwise: str) -> ctypes.CDLL | None:
    """The library that `build` makes; None if it does not build or load, with a warning about what happens `otherwise`, and why."""
    try:
        return ctypes.CDLL(str(build()))
    except (ToolchainError, MachineTrouble, OSError) as error:
        warn(f"{otherwise}: {error}")
        return None
