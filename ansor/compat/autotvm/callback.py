"""Callbacks that log, keep or show each batch of a tuner. Source: AutoTVM 0.9, `autotvm.tuner.callback`.

A callback is called with the tuner, inputs and results, in order.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.database import Database
from ansor.compat.autotvm.log_line import encode
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.autotvm.si_prefix import format_si_prefix
from ansor.compat.common.log_files import append, writing
from ansor.errors import RecordError


class Callback(Protocol):
    """Called with every batch of a `Tuner`; callbacks may expect a certain kind of tuner."""

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None: ...


def log_to_file(file_out: str | Path | IO[str], protocol: str = "json") -> Callback:
    """Append one line per measurement to a log, given by name (its folder is created if missing) or as an open file.

    Raises RecordError for a protocol other than "json", or if the file cannot be written.
    """
    if protocol != "json":
        raise RecordError(f"asked to log by the protocol {protocol!r}; give 'json', which every reader of logs accepts")

    def log(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        text = "".join(encode(inp, result) + "\n" for inp, result in zip(inputs, results, strict=True))
        if not isinstance(file_out, (str, Path)):
            file_out.write(text)
            return
        with writing(file_out, "measurements"):
            Path(file_out).parent.mkdir(parents=True, exist_ok=True)
        append(file_out, text.encode("ascii"), "measurements")

    return log


def log_to_database(db: Database) -> Callback:
    """Save every measurement in a database."""

    def log(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results, strict=True):
            db.save(inp, result)

    return log


class Monitor:
    """A callback that remembers scores, in flop/s, and when they were measured."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results, strict=True):
            self.scores.append(inp.task.flop / result.mean_cost)
            self.timestamps.append(result.timestamp)

    def trial_scores(self) -> NDArray[np.float64]:
        """flop/s of every trial, 0 for a failure."""
        return np.array(self.scores)

    def trial_timestamps(self) -> NDArray[np.float64]:
        """Seconds since 1970 of every trial."""
        return np.array(self.timestamps)


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Show one line on standard output: the speed of the last batch, the best speed, how many of `total` trials are done, and the time.

    Raises ConfigError for an unknown `si_prefix`.
    """
    format_si_prefix(0, si_prefix)
    started, done, best = time.monotonic(), 0, 0.0

    def show(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        nonlocal done, best
        speeds = [inp.task.flop / result.mean_cost for inp, result in zip(inputs, results, strict=True)]
        done, best = done + len(results), max(best, *speeds)
        now, most = format_si_prefix(max(speeds), si_prefix), format_si_prefix(best, si_prefix)
        sys.stdout.write(f"\r{prefix} Current/Best: {now:7.2f}/{most:7.2f} {si_prefix}FLOPS | Progress: ({done}/{total}) | {time.monotonic() - started:.2f} s")
        if tuner.ttl <= 0:
            sys.stdout.write(" Done.\n")
        sys.stdout.flush()

    return show
