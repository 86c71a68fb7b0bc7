"""Reads and writes the auto-scheduler's logs: files of lines that `log_line` parses. Unusable lines are skipped with a reason.

Source: TVM 0.9, `auto_scheduler.measure_record`.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ansor.compat.auto_scheduler.log_line import LogRecord, read_line, write_line
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.workload_key import calc_workload_dis_factor, decode_workload_key
from ansor.compat.common.best import best
from ansor.compat.common.hardware import kind_of_target
from ansor.compat.common.log_files import append, put
from ansor.errors import RecordError
from ansor.support import line_files
from ansor.support.line_files import Loaded, Skipped, Source

_logger = logging.getLogger("auto_scheduler")
_COMMENTS = ("#", " ")

Pairs = Iterable[tuple[MeasureInput, MeasureResult]]


def load(source: Source) -> Loaded[LogRecord]:
    """The records of a log file, given by path or open, with the skipped lines. Raises RecordError if it cannot be read."""
    return line_files.gathered(_lines(source))


class RecordReader:
    """A log file, read anew on each iteration. The logger "auto_scheduler" warns about skipped lines."""

    def __init__(self, filename: str | Path) -> None:
        self.filename = filename

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        return ((record.input, record.result) for record in _warned(self.filename))

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Inputs and results of at most `max_lines` records (None or 0: all), after skipping `skip_lines`."""
        pairs = list(islice(self, skip_lines, skip_lines + max_lines if max_lines else None))
        return [inp for inp, _ in pairs], [result for _, result in pairs]


def load_records(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Iterate over the records of a log file. Warns about skipped lines. Raises RecordError if the file cannot be read."""
    return iter(RecordReader(filename))


def save_records(filename: str | Path, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Append measurements to a log file, all or none. Raises RecordError if a line cannot hold one, or the file cannot be written."""
    if len(inputs) != len(results):
        raise RecordError(f"asked to log {len(inputs)} inputs with {len(results)} results; give one result for each input")
    text = "".join(write_line(LogRecord(inp, result)) + "\n" for inp, result in zip(inputs, results, strict=True))
    append(filename, text.encode())


def load_best_record(
    filename: str | Path, workload_key: str | None = None, target: str | None = None, include_compatible: bool = False
) -> tuple[MeasureInput, MeasureResult] | tuple[None, None]:
    """The record with the least mean cost, optionally of one workload and target; `(None, None)` if there is none. Failures do not count.

    Targets match if their kinds do. With `include_compatible`, records of workloads that differ only in numbers also count, with
    their costs multiplied by `calc_workload_dis_factor`.
    """
    found = min(costs_of(RecordReader(filename), workload_key, target, include_compatible), key=lambda one: one[2], default=None)
    return (None, None) if found is None else found[:2]


def costs_of(
    pairs: Pairs, workload_key: str | None, target: str | None, include_compatible: bool
) -> Iterator[tuple[MeasureInput, MeasureResult, float]]:
    """Successful measurements of a workload and a kind of target (None: any), with their mean cost. See `load_best_record`."""
    wanted = decode_workload_key(workload_key) if workload_key else None
    for inp, result in pairs:
        if target and inp.task.target_kind != kind_of_target(target):
            continue
        factor = 1.0 if wanted is None else calc_workload_dis_factor(wanted, decode_workload_key(inp.task.workload_key))
        if (include_compatible or factor == 1.0) and math.isfinite(result.mean_cost * factor):
            yield inp, result, result.mean_cost * factor


def best_records(records: Iterable[LogRecord], count: int = 1) -> list[LogRecord]:
    """The `count` records with the least mean cost of every workload and target (compared by full text), in log order. On ties the first wins.

    Failures never count. Raises RecordError for a `count` below 1.
    """
    if count < 1:
        raise RecordError(f"asked for the best {count} records of each workload; give a count of 1 or more")
    return best(records, lambda record: record.result.mean_cost, lambda record: [(record.input.task.workload_key, record.input.task.target)], count)


def distill_record_file(in_file: str | Path, out_file: str | Path, count: int = 1) -> int:
    """Write the lines of `best_records` of one log to another, which may be the same file. Returns the number of lines.

    Raises RecordError if the input cannot be read or the output cannot be written.
    """
    kept = best_records(_warned(in_file), count)
    put(out_file, "".join(write_line(record) + "\n" for record in kept).encode())
    return len(kept)


def _lines(source: Source) -> Iterator[LogRecord | Skipped]:
    return line_files.read(source, lambda row: None if row.startswith(_COMMENTS) else read_line(row))


def _warned(filename: str | Path) -> Iterator[LogRecord]:
    return line_files.warned(_lines(filename), str(filename), _logger)
