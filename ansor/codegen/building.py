"""What turns text into artifacts: the protocol, so that a target of another package may bring its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ansor.codegen.artifact import Artifact
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiled


@dataclass(frozen=True, slots=True)
class Making:
    """What became of texts that were built together: an artifact of each, or none, and what the tool said."""

    artifacts: tuple[Artifact, ...]
    said: Compiled


class Toolchain(Protocol):
    """Builds what the devices of a target run.

    `version` and `flags` say what made a record's programs; `together` is how many texts of a form one call takes.
    """

    @property
    def version(self) -> str:
        """What it is called, with its version."""

    @property
    def flags(self) -> tuple[str, ...]:
        """How it builds, for records."""

    def forms(self) -> tuple[str, ...]:
        """The forms it makes."""

    def together(self, form: str) -> int:
        """Texts that are worth building in one call, at most."""

    def prepare(self, form: str) -> None:
        """Make what is slow the first time, so that no candidate's limit pays for it. Raises ToolchainError when it cannot build that form."""

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> Making:
        """Build texts into files that begin with `stem`. What is wrong with a text is a value. Raises ToolchainError when the tool cannot be started."""
