"""The simulators in C: built once, kept, and loaded."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from ansor.codegen.toolchain import cached_library, find_compiler

_HERE = Path(__file__).parent


@cache
def simulator_library(name: str) -> ctypes.CDLL:
    """The library of `name`.c ("functional", "cycles"). Raises ToolchainError if there is no C compiler."""
    text = (_HERE / "columns.h").read_text() + (_HERE / f"{name}.c").read_text()
    return ctypes.CDLL(str(cached_library(find_compiler(), f"vta-{name}", text)))
