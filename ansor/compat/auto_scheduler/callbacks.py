"""Measurement callbacks: `RecordToFile` logs measurements; any other callback receives them. Source: TVM 0.9, `auto_scheduler.measure`, `measure_record`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.record import save_records
from ansor.compat.common.log_files import writing

OURS = ".ansor.jsonl"
"""Suffix of the ansor record file next to a log, for programs that the log's steps cannot express."""


class MeasureCallback(Protocol):
    """Receives measurements. `policy` is the search policy, or None."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None: ...


class PythonBasedMeasureCallback:
    """Base class for callbacks: `callback` runs after every measurement of a program that a state can express."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Handle the inputs and results of measurements, in order."""
        raise NotImplementedError


class RecordToFile:
    """Append measurements to a log, one line each. Creates the folder if it is missing.

    Programs that the log's steps cannot express (packed operands, vectors along a reduction, other algorithms) go to an ansor record file next to the log,
    with the suffix `.ansor.jsonl`.
    """

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)
        with writing(filename, "measurements"):
            Path(filename).parent.mkdir(parents=True, exist_ok=True)

    @property
    def own_file(self) -> Path:
        """The record file for programs that a log cannot express."""
        return own_file(self.filename)

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Append the measurements. Raises RecordError if that fails."""
        save_records(self.filename, inputs, results)


def own_file(log: str | Path) -> Path:
    """The ansor record file next to a log."""
    return Path(f"{log}{OURS}")
