"""The protocol of transports, which run trial programs on devices, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ansor.codegen.artifact import Artifact
from ansor.measure.failure import Failure

ARGUMENT_BYTES = 1 << 30
"""Memory for a program's arguments, beyond a candidate's limit."""

CLOSED = Failure("machine", "the device was closed while the program ran")
TOO_MUCH = Failure("exit", "wrote more than an answer may hold")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a program: seconds of wall time, and bytes of memory beyond its arguments."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that ended: its standard output; why it failed, if the transport can tell (a signal, a timeout, a lost link).
    counters: by name; INSTRUCTIONS: those of the marked call, if the transport counts."""

    output: str
    failure: Failure | None = None
    counters: Mapping[str, float] = field(default_factory=dict)


INSTRUCTIONS = "instructions"


class Transport(Protocol):
    """Runs programs on a device, one at a time."""

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """Run `program MODE KEPT` with the recipe on standard input. `kept`: the name of a file kept on the device, '-' for none."""

    def place(self, path: Path) -> str:
        """Bring a file with an argument's values to the device, unless it is there; returns its path there."""

    def forget(self, kept: str) -> None:
        """Remove a kept file."""


def failed_by_signal(name: str, number: int, said: str = "") -> Failure:
    """The failure of a program that a signal killed."""
    kind = {"SIGILL": "instruction", "SIGKILL": "memory"}.get(name, "crash")  # only the system's out-of-memory killer sends SIGKILL
    what = "an instruction that the processor does not have" if kind == "instruction" else f"ended by signal {number}"
    return Failure(kind, f"{name}: {what}{f'; it said: {said}' if said else ''}")
