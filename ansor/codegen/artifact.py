"""What a toolchain makes of C text for a device to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.source import CSource

LIBRARY = "library"
"""A shared library that a process of this machine loads."""

PROGRAM = "program"
"""A static executable of a candidate, what describes its arguments, and the trial program around them: what emulators and agents run."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something built.

    source: the text it is of, and how that is called. path: the file. form: what kind of file it is, one of those that its toolchain makes.
    symbol: the entry point in it. digest: of the machine code, equal for programs that are the same to the machine; '' where that is not known.
    """

    source: CSource
    path: Path
    symbol: str
    form: str = LIBRARY
    digest: str = ""
