"""Reads and writes AutoTVM's logs: files of lines that `log_line` parses. Unusable lines are skipped with a reason. Source: AutoTVM 0.9, `autotvm.record`."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from ansor.compat.autotvm.database import measure_str_key
from ansor.compat.autotvm.log_line import LogRecord, read_line
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.common import target_keys as target_text
from ansor.compat.common.best import best
from ansor.compat.common.local_target import local_target
from ansor.compat.common.log_files import put
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.errors import AnsorError
from ansor.manual.program import lower, source_of
from ansor.support import line_files
from ansor.support.line_files import Loaded, Skipped, Source

_logger = logging.getLogger("autotvm")


def load(source: Source, *, old: bool = False) -> Loaded[LogRecord]:
    """The records of a log file, given by path or open, with the skipped lines; lines of version 0.1 only if `old`.

    Raises RecordError if it cannot be read.
    """
    return line_files.gathered(_lines(source, old=old))


def load_from_file(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Iterate over the records of a log file. The logger "autotvm" warns about skipped lines.

    Raises RecordError if the file cannot be read.
    """
    return _pairs(filename, str(filename))


def load_from_buffer(file: IO[str] | IO[bytes]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Like `load_from_file`, from an open file."""
    return _pairs(file, "log")


def best_records(records: Iterable[LogRecord]) -> list[LogRecord]:
    """The records with the least mean cost for each workload and target key, or workload and model, in log order. On ties the first wins.

    Failures and unknown models do not count.
    """
    def groups(record: LogRecord) -> list[tuple[str, str, str]]:
        return [(*name, repr(record.input.task)) for name in target_text.names(record.input.target)]

    return best(records, lambda record: record.result.mean_cost, groups)


def pick_best(in_file: str | Path, out_file: str | Path | IO[str]) -> int:
    """Write the lines of `best_records` of one log to another, which may be the same file. Returns the number of lines.

    Raises RecordError if the input cannot be read or the output cannot be written.
    """
    picked = best_records(line_files.warned(_lines(in_file), str(in_file), _logger))
    if isinstance(out_file, (str, Path)):
        put(out_file, _text(picked).encode("ascii"), f"the best records of {in_file}")
    else:
        out_file.write(_text(picked))
    return len(picked)


def read(in_file: str | Path, begin: int = 0, end: int = 5, *, ir: bool = False, code: bool = False) -> list[str]:
    """A readable listing, as `record --mode read` printed it: records `begin` to `end` (exclusive), a line each, then how many
    more there are, and what was left out. Contains printable characters only.

    ir, code: add loops or the C code after each record whose template is registered. Raises RecordError if the file cannot be read.
    """
    loaded = load(in_file)
    lines: list[str] = []
    for place, record in enumerate(loaded.records[begin:end], begin):
        lines += [f"{place}: {_described(record)}", *_program(record, ir, code)]
    return [*lines, *line_files.others(loaded, begin, end), *line_files.told(loaded.skipped)]


def pick(in_file: str | Path, out_file: str | Path | None = None) -> Path:
    """Like `record --mode pick`: `pick_best` into `out_file`, by default the log's name plus `.best.log`. Returns its path."""
    path = Path(f"{in_file}.best.log") if out_file is None else Path(out_file)
    pick_best(in_file, path)
    return path


def split_workload(in_file: str | Path, clean: bool = True) -> list[Path]:
    """Like `record --mode split`: write a log for each workload (target, task and arguments) next to the log, in order of appearance, named
    `LOG.000.wkl`, `LOG.001.wkl`, ... With `clean`, keep only the first record of each configuration. Returns the paths.

    Raises RecordError if the log cannot be read or an output cannot be written.
    """
    logs: dict[str, dict[str, LogRecord]] = {}
    for number, record in enumerate(line_files.warned(_lines(in_file), str(in_file), _logger)):
        kept = logs.setdefault(measure_str_key(record.input, include_config=False), {})
        kept.setdefault(measure_str_key(record.input) if clean else str(number), record)
    paths = []
    for number, kept in enumerate(logs.values()):
        paths.append(Path(f"{in_file}.{number:03d}.wkl"))
        put(paths[-1], _text(kept.values()).encode("ascii"), f"the records of {in_file}")
    return paths


def _text(records: Iterable[LogRecord]) -> str:
    return "".join(f"{record.line}\n" for record in records)


def _lines(source: Source, *, old: bool = False) -> Iterator[LogRecord | Skipped]:
    return line_files.read(source, lambda row: None if row.startswith("#") else read_line(row, old=old))


def _pairs(source: Source, name: str) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    return ((record.input, record.result) for record in line_files.warned(_lines(source), name, _logger))


def _program(record: LogRecord, ir: bool, code: bool) -> list[str]:
    if not (ir or code):
        return []
    try:
        schedule, args = record.input.task.instantiate(record.input.config)
        texts = [str(lower(schedule, args))] if ir else []
        return texts + ([source_of(schedule.sketch(args), local_target(record.input.target)).text] if code else [])
    except AnsorError as error:
        return [f"no program: {error}"]


def _described(record: LogRecord) -> str:
    task, result = record.input.task, record.result
    outcome = f"{result.mean_cost:.4g} s" if result.error_no == MeasureErrorNo.NO_ERROR else MeasureErrorNo(result.error_no).name
    return f"{record.input.target!a} {task.name!a}{task.args!a} {record.input.config!a} -> {outcome}"
