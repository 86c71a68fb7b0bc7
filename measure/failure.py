"""Failed trials are values: a kind to count, and the tool's own text to read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = (
    "instantiation",  # the candidate could not be turned into C (set by the caller)
    "compile",
    "compile_timeout",
    "load",  # the shared library or its entry point could not be loaded
    "crash",  # a fatal signal
    "timeout",  # wall time
    "memory",  # more memory than allowed
    "out_of_bounds",  # wrote outside its buffers
    "wrong_answer",  # outputs differ from the reference, or an input was changed
    "exit",  # ended the process
    "instruction",  # an instruction that the processor does not have
    "trap",  # the processor stopped the program for a reason other than a signal
    "does_not_fit",  # too large for the memory of the device
    "reset",  # the device restarted while the program ran
    "link_lost",  # the connection to the device broke
    "queue",  # no device was free to run the program
    "reference",  # the reference of the task failed, so nothing can be verified
    "machine",  # not the program's failure, see `machine_trouble`: neither recorded nor counted
)


LINK = ("link_lost", "reset", "queue")
"""Failures of a device or the connection to it. They say nothing about the program, which is not recorded as failed."""

PASSING = ("machine", *LINK)
"""Kinds that say nothing about the program and may not recur."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no time; `kind` is one of `KINDS`. measured_by, counters: as in `Observation`, for display."""

    kind: str
    text: str
    measured_by: str = field(default="", compare=False, repr=False)
    counters: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Failure: unknown kind {self.kind!r}; one of {', '.join(KINDS)}")

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
