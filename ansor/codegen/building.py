"""The protocol of toolchains, which turn text into artifacts, so that targets of other packages can have their own."""

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
class BuildOutput:
    """The result of building texts together: an artifact of each, or none, and the tool's output."""

    artifacts: tuple[Artifact, ...]
    said: Compiled


class Toolchain(Protocol):
    """Builds what the devices of a target run.

    `version` and `flags` identify it in records; `together`: how many texts of a form to build per call.
    """

    @property
    def version(self) -> str:
        """Its name and version."""

    @property
    def flags(self) -> tuple[str, ...]:
        """How it builds, for records."""

    def forms(self) -> tuple[str, ...]:
        """The forms it can build."""

    def together(self, form: str) -> int:
        """The most texts worth building per call."""

    def prepare(self, form: str) -> None:
        """Do slow first-time work, so that it does not count against a candidate's time limit. Raises ToolchainError if it cannot build that form."""

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> BuildOutput:
        """Build texts into files that begin with `stem`. Errors in a text are values. Raises ToolchainError if the tool cannot be started."""
