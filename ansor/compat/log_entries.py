"""Reads the records of any log or record file, to list them, to keep the best, or to split them by workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansor.compat.auto_scheduler import log_line as state_line
from ansor.compat.auto_scheduler import record as states
from ansor.compat.auto_scheduler.measured import MeasureResult as StateResult
from ansor.compat.autotvm import log_line as config_line
from ansor.compat.autotvm import record as configs
from ansor.compat.autotvm.measured import MeasureResult as ConfigResult
from ansor.compat.common.best import best
from ansor.compat.common.log_files import put
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.compat.log_kinds import LogKind, kind_of_file
from ansor.errors import RecordError
from ansor.measure import record as trials
from ansor.support import line_files
from ansor.support.line_files import Loaded
from ansor.support.text import format_seconds

BEST = {LogKind.RECORDS: ".best.jsonl", LogKind.AUTO_SCHEDULER: ".best.json", LogKind.AUTOTVM: ".best.log"}


@dataclass(frozen=True)
class Entry:
    """A record: its workload and target as texts, a short description, its mean seconds (infinite for a failure), why it failed, and its line."""

    workload: str
    target: str
    program: str
    seconds: float
    failure: str
    line: str

    def __str__(self) -> str:
        """A line of printable characters."""
        outcome = self.failure or format_seconds(self.seconds)
        return f"{self.target!a} {self.workload!a} {ascii(self.program)[1:-1]} -> {ascii(outcome)[1:-1]}"


def entries(path: str | Path) -> Loaded[Entry]:
    """The records of a file of any format, and the lines left out. Raises RecordError if the file cannot be read, or has no known format."""
    kind = kind_of_file(path)
    if kind == LogKind.RECORDS:
        return _of_trials(path)
    if kind == LogKind.AUTO_SCHEDULER:
        states_found = states.load(path)
        return Loaded(tuple(map(_of_state, states_found.records)), states_found.skipped)
    configs_found = configs.load(path, old=True)
    return Loaded(tuple(map(_of_config, configs_found.records)), configs_found.skipped)


def read(path: str | Path, begin: int = 0, end: int = 5, *, ir: bool = False, code: bool = False) -> list[str]:
    """A readable listing: records `begin` to `end` (exclusive), a line each, then how many more there are, and what was left out.
    Contains printable characters only.

    ir, code: for AutoTVM logs, add the loops or the C code after each record whose template is registered. Raises RecordError for other files.
    """
    if kind_of_file(path) == LogKind.AUTOTVM:
        return configs.read(path, begin, end, ir=ir, code=code)
    if ir or code:
        raise RecordError(f"asked for the programs of {path}, which holds no configurations of templates; use `ansor show`, or SearchTask.print_best")
    loaded = entries(path)
    lines = [f"{number}: {entry}" for number, entry in enumerate(loaded.records[begin:end], begin)]
    return [*lines, *line_files.others(loaded, begin, end), *line_files.told(loaded.skipped)]


def pick(path: str | Path, out: str | Path | None = None) -> tuple[Path, int]:
    """Write the best record of every workload and target to another file, by default next to the input. Returns its path and the number of records.

    Failures never count. Raises RecordError if the input cannot be read or the output cannot be written.
    """
    kind, target = kind_of_file(path), Path(out) if out is not None else None
    target = target or Path(f"{path}{BEST[kind]}")
    if kind == LogKind.AUTOTVM:  # groups by the keys and models of targets
        lines = [record.line for record in configs.best_records(configs.load(path, old=True).records)]
    else:
        lines = [entry.line for entry in best(entries(path).records, lambda entry: entry.seconds, lambda entry: [(entry.workload, entry.target)])]
    put(target, _header(path, kind) + "".join(f"{line}\n" for line in lines).encode())
    return target, len(lines)


def split(path: str | Path) -> list[tuple[Path, int]]:
    """Write the records of each workload to its own file, `FILE.000.wkl` and on, in order of first appearance, without duplicate lines (for AutoTVM:
    configurations).

    Returns the files with their numbers of records. Raises RecordError if the input cannot be read or an output cannot be written.
    """
    kind, groups = kind_of_file(path), dict[str, list[str]]()
    if kind == LogKind.AUTOTVM:
        return [(out, len(configs.load(out).records)) for out in configs.split_workload(path)]
    for entry in entries(path).records:
        groups.setdefault(entry.workload, []).append(entry.line)
    written = []
    for number, lines in enumerate(groups.values()):
        out, once = Path(f"{path}.{number:03d}.wkl"), list(dict.fromkeys(lines))
        put(out, _header(path, kind) + "".join(f"{line}\n" for line in once).encode())
        written.append((out, len(once)))
    return written


def _header(path: str | Path, kind: LogKind) -> bytes:
    """The last header of a record file, for all its trials; empty for a log."""
    if kind != LogKind.RECORDS:
        return b""
    headers = trials.load(path).headers
    return trials.header_line(headers[-1] if headers else trials.foreign_header(f"records {Path(path).name}"))


def _of_state(record: state_line.LogRecord) -> Entry:
    task = record.input.task
    steps = " ".join(str(step.to_list()) for step in record.input.state.transform_steps)
    return _entry(task.workload_key, task.target, steps, record.result, state_line.write_line(record))


def _of_config(record: config_line.LogRecord) -> Entry:
    task = record.input.task
    return _entry(f"{task.name}{task.args}", record.input.target, str(record.input.config), record.result, record.line)


def _entry(workload: str, target: str, program: str, result: StateResult | ConfigResult, line: str) -> Entry:
    failure = "" if result.error_no == MeasureErrorNo.NO_ERROR else MeasureErrorNo(result.error_no).name
    return Entry(workload, target, program, result.mean_cost, failure, line)


def _of_trials(path: str | Path) -> Loaded[Entry]:
    def read_line(row: str) -> Entry | None:
        record = reader.read(row.encode())
        if row.startswith(('{"header"', '{"comparison"')):
            return None
        if isinstance(record, str):
            raise RecordError(record)
        failure = "" if record.failure is None else str(record.failure)
        return Entry(record.workload, record.target, f"row {record.row}", record.cost, failure, row.rstrip("\n"))

    reader = trials.Reader(None, None)
    return line_files.gathered(line_files.read(path, read_line))
