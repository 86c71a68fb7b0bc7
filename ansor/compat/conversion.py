"""Converts between log files and record files: TVM's auto-scheduler, AutoTVM, and ansor. Start at `convert`.

    from \\ to         records                          auto_scheduler                  autotvm
    records           -                                steps, if TVM's can express it  -
    auto_scheduler    a row, if our search has it      as v0.6                         -
    autotvm           -                                -                               as 0.2

An AutoTVM configuration has a meaning only for its template, so other formats cannot hold it. Nothing in a line is executed: workloads are names of
registered functions, or declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ansor.compat.auto_scheduler import log_line as state_line
from ansor.compat.auto_scheduler import record as states
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption, MeasureInput
from ansor.compat.autotvm import log_line as config_line
from ansor.compat.autotvm import record as configs
from ansor.compat.common.log_files import append, put
from ansor.compat.log_kinds import LogKind, kind_of_file
from ansor.compat.state_records import FromStates, FromTrials
from ansor.errors import AnsorError, RecordError
from ansor.measure import record as trials
from ansor.measure.record import Record, RecordFile
from ansor.support.line_files import Loaded
from ansor.support.text import counted
from ansor.te.tensor import Tensor

LONGEST = 300
"""The maximum length of a reason, in characters."""

R = TypeVar("R")
M = TypeVar("M")

DEFAULT = {LogKind.RECORDS: LogKind.AUTO_SCHEDULER, LogKind.AUTO_SCHEDULER: LogKind.RECORDS, LogKind.AUTOTVM: LogKind.AUTOTVM}
"""The default output format for each input format."""

NO_PROGRAM = "a configuration means something only to its template: another format cannot hold such programs"
NO_CONFIG = "they are programs, not configurations of a template: a log of AutoTVM cannot hold them"


@dataclass(frozen=True)
class LeftOutLines:
    """How many lines were left out for one reason, and the number of the first, if known."""

    reason: str
    count: int
    first: int | None = None

    def __str__(self) -> str:
        where = "" if self.first is None else f" (line {self.first}{' and others' if self.count > 1 else ''})"
        return f"{counted(self.count, 'line')}{where} left out: {self.reason}"


@dataclass(frozen=True)
class ConversionResult:
    """The result of a conversion: both formats, the number of records written, and what was left out."""

    source: LogKind
    to: LogKind
    written: int
    left_out: tuple[LeftOutLines, ...]


def convert(
    source: str | Path, out: str | Path, to: LogKind | None = None, *, workloads: Mapping[str, tuple[Tensor, ...]] | None = None, here: bool = False
) -> ConversionResult:
    """Convert the records of a file to another format.

    Args:
        source: a log or a record file, recognised by its lines.
        out: written in one step if it does not exist; otherwise the records are appended, if it has that format.
        to: the format; by default that of `out` if it exists, otherwise from `DEFAULT`.
        workloads: the workloads that records may have: key in a log -> tensors.
        here: logged times are from this machine and its compiler, so that `ansor tune` continues from them.

    Raises RecordError if a file cannot be read or written, or has another format.
    """
    source, out = Path(source), Path(out)
    kind = kind_of_file(source)
    there = out.exists() and out.stat().st_size > 0
    if there and out.samefile(source):
        raise RecordError(f"asked to convert {source} into itself; name another file")
    holds = kind_of_file(out) if there else None
    to = to or holds or DEFAULT[kind]
    if holds not in (None, to):
        raise RecordError(f"asked to write {to} to {out}, which holds {holds}; name another file")
    left = _LeftOutCounts()
    if kind == to == LogKind.RECORDS:
        raise RecordError(f"asked to convert {source} to records, which it holds already; give --to auto_scheduler, or join files with cat")
    if kind != to and LogKind.AUTOTVM in (kind, to):
        left.add(NO_PROGRAM if kind == LogKind.AUTOTVM else NO_CONFIG, _count(source, kind, left))
        return ConversionResult(kind, to, 0, left.found())
    if to == LogKind.RECORDS:
        found = left.made(_states(source, left), FromStates(here=here).convert)
        if found:
            _write_trials(source, out, found, there)
        return ConversionResult(kind, to, len(found), left.found())
    lines = _lines(source, kind, left, workloads or {})
    if lines:
        (append if there else put)(out, "".join(f"{line}\n" for line in lines).encode())
    return ConversionResult(kind, to, len(lines), left.found())


class _LeftOutCounts:
    """Counts what is left out, by reason."""

    def __init__(self) -> None:
        self._found: dict[str, LeftOutLines] = {}

    def add(self, reason: str, count: int = 1, first: int | None = None) -> None:
        reason = _printable(reason)
        known = self._found.get(reason, LeftOutLines(reason, 0, first))
        self._found[reason] = replace(known, count=known.count + count)

    def found(self) -> tuple[LeftOutLines, ...]:
        return tuple(one for one in self._found.values() if one.count)

    def read(self, loaded: Loaded[R]) -> tuple[R, ...]:
        """The records of a log. Counts unusable lines."""
        for one in loaded.skipped:
            self.add(one.reason, first=one.line)
        return loaded.records

    def made(self, records: Iterable[R], make: Callable[[R], M]) -> list[M]:
        """The results of `make`; if it raises, the message becomes a reason."""
        found = []
        for record in records:
            try:
                found.append(make(record))
            except AnsorError as error:
                self.add(str(error))
        return found


def _printable(reason: str) -> str:
    """Printable, on one line: a reason may quote untrusted text."""
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in reason)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _states(source: Path, left: _LeftOutCounts) -> tuple[state_line.LogRecord, ...]:
    return left.read(states.load(source))


def _configs(source: Path, left: _LeftOutCounts) -> tuple[config_line.LogRecord, ...]:
    return left.read(configs.load(source, old=True))


def _of_trials(source: Path, left: _LeftOutCounts) -> tuple[Record, ...]:
    loaded = trials.load(source)
    for reason, count in loaded.skipped.items():
        left.add(reason, count)
    return loaded.records


def _count(source: Path, kind: LogKind, left: _LeftOutCounts) -> int:
    read = {LogKind.RECORDS: _of_trials, LogKind.AUTO_SCHEDULER: _states, LogKind.AUTOTVM: _configs}[kind]
    return len(read(source, left))


def _lines(source: Path, kind: LogKind, left: _LeftOutCounts, workloads: Mapping[str, tuple[Tensor, ...]]) -> list[str]:
    """The lines of a log of AutoTVM, or else of the auto-scheduler."""
    if kind == LogKind.AUTO_SCHEDULER:
        return left.made(_states(source, left), _state_line)
    if kind == LogKind.AUTOTVM:
        return left.made(_configs(source, left), lambda record: record.line)  # as 0.2: fields that only 0.1 has become extra fields
    converter = FromTrials(workloads)
    return left.made(_of_trials(source, left), lambda record: _state_line(converter.convert(record)))


def _state_line(record: state_line.LogRecord) -> str:
    """A line of v0.6. TVM 0.9 does not read tasks that end with their host. Add the field after it: older versions never rewrote layouts."""
    task = record.input.task.recorded
    if task.target_host is not None and task.layout_rewrite_option is None:
        task = replace(task, layout_rewrite_option=LayoutRewriteOption.NO_REWRITE)
    return state_line.write_line(state_line.LogRecord(MeasureInput(task, record.input.state), record.result))


def _write_trials(source: Path, out: Path, found: Sequence[Record], there: bool) -> None:
    header = trials.foreign_header(f"the log {source.name}")
    if there:
        with RecordFile(out, header) as file:
            for record in found:
                file.append(record)
        return
    put(out, trials.header_line(header) + b"".join(map(trials.record_line, found)))
