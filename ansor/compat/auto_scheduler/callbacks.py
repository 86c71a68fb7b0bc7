"""Callbacks for measurements: `RecordToFile` logs them, others are called with them. Source: TVM 0.9, `auto_scheduler.measure`, `measure_record`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.record import save_records
from ansor.errors import RecordError

OURS = ".ansor.jsonl"
"""What the name of the record file ends with that holds what a log's steps cannot tell."""


class MeasureCallback(Protocol):
    """Is told of measurements: `policy` is what searches, or None."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None: ...


class PythonBasedMeasureCallback:
    """Base of callbacks: `callback` is called after every measurement whose program a state can tell."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Inputs and results of measurements, in order."""
        raise NotImplementedError


class RecordToFile:
    """Append measurements to a log, one line each; the folder is made when it is missing.

    Programs that the log's steps cannot tell (packed operands, vectors along a reduction, other algorithms) go to a record file of ours beside it, whose name
    ends in `.ansor.jsonl`.
    """

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)
        try:
            Path(filename).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"measurements cannot be logged to {filename}: {error}; name another file") from error

    @property
    def own_file(self) -> Path:
        """The file for programs that a log cannot express."""
        return own_file(self.filename)

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Append them. Raises RecordError if that fails."""
        save_records(self.filename, inputs, results)


def own_file(log: str | Path) -> Path:
    """The record file of ours beside a log."""
    return Path(f"{log}{OURS}")
