"""What a toolchain builds from C text for a device to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.source import CSource

LIBRARY = "library"
"""A shared library for a process of this machine."""

PROGRAM = "program"
"""A static executable for emulators and agents: a candidate, the description of its arguments, and the trial program around them."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A built candidate.

    source: its text, and how to call it. path: the file. form: the kind of file, one of its toolchain's forms.
    symbol: the entry point in it. digest: of the machine code, equal for identical machine code; '' if unknown.
    """

    source: CSource
    path: Path
    symbol: str
    form: str = LIBRARY
    digest: str = ""
