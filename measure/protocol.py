"""The protocol between runner and worker: one JSON object per line, in each direction."""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from ansor.codegen.source import Argument, ArgumentData, CSource


class CallData(TypedDict):
    """A built entry point and how to call it."""

    library: str
    entry: str
    arguments: Sequence[ArgumentData]
    workspace_bytes: int
    threads: int
    tolerance: float


class TaskRequest(TypedDict):
    """Make inputs and expected outputs of a task and keep them; answered by a `Reply` without seconds."""

    command: Literal["task"]
    task: str
    arguments: Sequence[ArgumentData]  # as declared
    reference: CallData | None  # None: outputs are not verified (but guard bands and inputs are)
    plain: CallData | None  # the plain program of the reference, if it has one
    reduction: int
    rounding: str  # see `MeasureTask`
    ranges: Mapping[str, tuple[float, float]]
    files: Mapping[str, str]  # values of single arguments
    seed: int
    threads: int  # the target's: they decide which clock times all candidates
    timeout: float


class RunRequest(TypedDict):
    """Run, verify and time one candidate of a task."""

    command: Literal["run"]
    task: str
    call: CallData
    best_seconds: float | None
    options: Mapping[str, float | Mapping[str, float]]  # the fields of TimingOptions, nested ones included


class NoiseRequest(TypedDict):
    """Time a fixed spin kernel `repeat` times."""

    command: Literal["noise"]
    repeat: int


class CheckRequest(TypedDict):
    """Run a child that does nothing, to check whether this machine runs programs at all."""

    command: Literal["check"]


class Reply(TypedDict):
    """The worker's answer to any request."""

    seconds: list[float]
    cut_short: bool
    failure: tuple[str, str] | None  # kind, text
    unknown_task: NotRequired[bool]  # send the TaskRequest (again) and repeat the request


Request = TaskRequest | RunRequest | NoiseRequest | CheckRequest


class BufferReport(TypedDict):
    """The address range of one of the child's buffers, so that a fault near it can name the buffer."""

    name: str
    low: int
    high: int


class FaultReport(TypedDict):
    """What `harness.c` reports about a fatal signal."""

    address: int
    no_memory: int
    stack_overflow: int


class Message(TypedDict, total=False):
    """One line from the child that runs a candidate to the worker."""

    buffers: list[BufferReport]
    fault: FaultReport
    failure: tuple[str, str]
    seconds: list[float]
    sensitivity: dict[str, float]
    off: dict[str, float]
    each: list[str]
    cut_short: bool
    done: bool


def call_data(source: CSource, library: str) -> CallData:
    """How to call a source built into `library`."""
    return {
        "library": library,
        "entry": source.entry,
        "arguments": [argument.to_data() for argument in source.arguments],
        "workspace_bytes": source.workspace_bytes,
        "threads": source.threads,
        "tolerance": source.tolerance,
    }


def arguments_of(data: Sequence[ArgumentData]) -> tuple[Argument, ...]:
    """Parse the arguments in a message."""
    return tuple(Argument.from_data(argument) for argument in data)
