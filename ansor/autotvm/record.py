"""AutoTVM's logs: files of lines as `log_line` tells. A line that cannot be used is left out with its reason. Source: AutoTVM 0.9, `autotvm.record`."""

import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from ansor import log_lines
from ansor.autotvm import target_text
from ansor.autotvm.log_line import LogRecord, encode, read_line
from ansor.autotvm.measured import MeasureInput, MeasureResult
from ansor.errors import RecordError
from ansor.log_lines import Loaded, Skipped, Source
from ansor.outcome import MeasureErrorNo
from ansor.text import counted

_logger = logging.getLogger("autotvm")


def load(source: Source, *, old: bool = False) -> Loaded[LogRecord]:
    """The records of a log file, or of one that is open, with the lines that were left out; lines of version 0.1 only if `old`.

    Raises RecordError when it cannot be read.
    """
    return log_lines.gathered(_lines(source, old=old))


def load_from_file(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a log file, one after the other. A line that is left out is a warning of the logger "autotvm".

    Raises RecordError when the file cannot be read.
    """
    return _pairs(filename, str(filename))


def load_from_buffer(file: IO[str] | IO[bytes]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """As `load_from_file`, from an open file."""
    return _pairs(file, "log")


def best_records(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Those with the least mean cost for a key of the target and a workload, or a model and a workload, in their order; the first of equal ones.

    Failures are never among them. Models that are unknown do not count.
    """
    best: dict[tuple[str, str, str], tuple[float, int]] = {}
    numbered = list(enumerate(records))
    for number, record in numbered:
        cost = record.result.mean_cost
        if math.isinf(cost):
            continue
        workload = repr(record.input.task)
        names = [("key", key) for key in target_text.keys(record.input.target)]
        model = target_text.model(record.input.target)
        if model != target_text.UNKNOWN_MODEL:
            names.append(("model", model))
        for word, name in names:
            best[word, name, workload] = min(best.get((word, name, workload), (cost, number)), (cost, number))
    kept = {number for _, number in best.values()}
    return [record for number, record in numbered if number in kept]


def pick_best(in_file: str | Path, out_file: str | Path | IO[str]) -> int:
    """Write the lines of `best_records` of a log to another one, which may be the same. Returns how many.

    Raises RecordError when one cannot be read or the other not be written.
    """
    picked = best_records(log_lines.warned(_lines(in_file), str(in_file), _logger))
    text = "".join(encode(record.input, record.result, tvm_version=record.tvm_version, others=record.others) + "\n" for record in picked)
    if not isinstance(out_file, (str, Path)):
        out_file.write(text)
        return len(picked)
    try:
        Path(out_file).write_text(text, encoding="ascii")
    except OSError as error:
        raise RecordError(f"the best records of {in_file} cannot be written to {out_file}: {error}; name another file") from error
    return len(picked)


def read(in_file: str | Path, begin: int = 0, end: int = 5) -> list[str]:
    """For people: records number `begin` up to, not including, `end`, a line each, and then what was left out. Printable characters only.

    What `record --mode read` printed. Raises RecordError when the file cannot be read.
    """
    loaded = load(in_file)
    lines = [f"{begin + place}: {_described(record)}" for place, record in enumerate(loaded.records[begin:end])]
    if loaded.skipped:
        first = loaded.skipped[0]
        lines.append(f"{counted(len(loaded.skipped), 'line')} left out; line {first.line}: {first.reason}")
    return lines


def pick(in_file: str | Path, out_file: str | Path | None = None) -> Path:
    """What `record --mode pick` did: `pick_best` into `out_file`, or the log's name with `.best.log` behind it. Returns where."""
    path = Path(f"{in_file}.best.log") if out_file is None else Path(out_file)
    pick_best(in_file, path)
    return path


def _lines(source: Source, *, old: bool = False) -> Iterator[LogRecord | Skipped]:
    return log_lines.read(source, lambda row: None if row.startswith("#") else read_line(row, old=old))


def _pairs(source: Source, name: str) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    return ((record.input, record.result) for record in log_lines.warned(_lines(source), name, _logger))


def _described(record: LogRecord) -> str:
    task, result = record.input.task, record.result
    outcome = f"{result.mean_cost:.4g} s" if result.error_no == MeasureErrorNo.NO_ERROR else MeasureErrorNo(result.error_no).name
    return f"{record.input.target!a} {task.name!a}{task.args!a} {record.input.config!a} -> {outcome}"
