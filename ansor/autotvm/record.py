"""AutoTVM's log lines, version 0.2: one JSON object for each measurement. Source: AutoTVM 0.9, `autotvm.record`.

    {"input": ["llvm", "matmul", [512, ["TENSOR", [512, 512], "float32"]], {}],
     "config": {"index": 193, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], ["unroll", "ot", false]]},
     "result": [[0.0012], 0, 0.8, 1650000000.0], "version": 0.2, "tvm_version": "0.9.0"}                        (on one line)

Lines are data that strangers wrote: nothing in them is executed, and one that cannot be used is left out with its reason. Lists become tuples.
Lines of version 0.1 (before TVM 0.7) are told and left out: their tasks and template keys have no counterpart. So are pickled lines: reading them runs code.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn, TypeGuard, cast

from ansor.autotvm import target_text
from ansor.autotvm.entities import Json
from ansor.autotvm.measured import MeasureErrorNo, MeasureInput, MeasureResult, Task
from ansor.autotvm.space import ConfigEntity
from ansor.errors import ConfigError, RecordError
from ansor.text import counted

VERSION = 0.2
FAILED_COST = 1e9
LONGEST = 1 << 20
"""Bytes of the longest line that is parsed."""

DEEPEST = 50
"""Lists in lists that are read."""

_DEEP = f"its lists are nested more than {DEEPEST} deep"
_FIELDS = ("input", "config", "result", "version", "tvm_version")
_logger = logging.getLogger("autotvm")


@dataclass(frozen=True)
class LogRecord:
    """One line: what was measured, what came out, the version that wrote it, and fields that we do not know."""

    input: MeasureInput
    result: MeasureResult
    tvm_version: str = ""
    others: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Skipped:
    """A line that was left out: its number from 1, and why, in printable characters."""

    line: int
    reason: str


@dataclass(frozen=True)
class Loaded:
    """The records of a log in its order, and the lines that were left out."""

    records: tuple[LogRecord, ...]
    skipped: tuple[Skipped, ...]


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json", *, tvm_version: str = "", others: Mapping[str, Json] | None = None) -> str:
    """The log line of a measurement, without its newline. A failure's costs are written as [1e9].

    Raises RecordError for the protocol "pickle", and for values that JSON cannot hold (objects, NaN).
    """
    _refuse_pickle(protocol)
    costs = result.costs if result.error_no == MeasureErrorNo.NO_ERROR else (FAILED_COST,)
    fields = {
        "input": [inp.target, inp.task.name, inp.task.args, dict(inp.task.kwargs)],
        "config": inp.config.to_json_dict(),
        "result": [costs, int(result.error_no), result.all_cost, result.timestamp],
        "version": VERSION,
        "tvm_version": tvm_version,
        **(others or {}),
    }
    try:
        return json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        what = f"configuration {inp.config.index} of task {inp.task.name!a}"
        raise RecordError(f"asked to log {what}, which JSON cannot hold: {error}; log plain values") from error


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """What a log line holds. Raises RecordError with the reason when it cannot be used, and for the protocol "pickle"."""
    _refuse_pickle(protocol)
    record = read_line(row)
    return record.input, record.result


def read_line(row: str) -> LogRecord:
    """All of a log line. Raises RecordError with the reason when it cannot be used."""
    if len(row) > LONGEST:
        _refuse(f"it has {len(row)} characters, the longest that is read has {LONGEST}")
    try:
        fields: object = json.loads(row, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        _refuse(_DEEP)
    except ValueError as error:
        _refuse("it has tabs, as pickled lines do, and those are never read" if row.count("\t") >= 3 else f"it is no JSON ({_brief(str(error))})")
    if not isinstance(fields, dict):
        _refuse(f"it is {_kind(fields)}, not an object")
    if not _nested_within(fields, DEEPEST):
        _refuse(_DEEP)
    _check_version(fields)
    missing = [name for name in ("input", "config", "result") if name not in fields]
    if missing:
        _refuse(f"it has no {', no '.join(missing)}")
    tvm_version = fields.get("tvm_version", "")
    if not isinstance(tvm_version, str):
        _refuse(f"its tvm_version is {_kind(tvm_version)}, not a text")
    others = {name: value for name, value in fields.items() if name not in _FIELDS}
    return LogRecord(_read_input(fields["input"], fields["config"]), _read_result(fields["result"]), tvm_version, others)


def load(source: str | Path | IO[str] | IO[bytes]) -> Loaded:
    """The records of a log file, or of one that is open, with the lines that were left out. Raises RecordError when it cannot be read."""
    records, skipped = [], []
    for found in _lines(source):
        if isinstance(found, LogRecord):
            records.append(found)
        else:
            skipped.append(found)
    return Loaded(tuple(records), tuple(skipped))


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
    picked = best_records(_warned(_lines(in_file), str(in_file)))
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


def _lines(source: str | Path | IO[str] | IO[bytes]) -> Iterator[LogRecord | Skipped]:
    if not isinstance(source, (str, Path)):
        yield from _read_rows(source)
        return
    try:
        with Path(source).open("rb") as file:
            yield from _read_rows(file)
    except OSError as error:
        raise RecordError(f"the log {source} cannot be read: {error}") from error


def _read_rows(rows: Iterable[str | bytes]) -> Iterator[LogRecord | Skipped]:
    for number, row in enumerate(rows, 1):
        try:
            text = row.decode() if isinstance(row, bytes) else row
            found: LogRecord | Skipped | None = read_line(text) if text.strip() and not text.startswith("#") else None
        except UnicodeDecodeError:
            found = Skipped(number, "it is not UTF-8")
        except RecordError as error:
            found = Skipped(number, str(error).removeprefix(_REFUSAL))
        if found is not None:
            yield found


def _warned(found: Iterable[LogRecord | Skipped], name: str) -> Iterator[LogRecord]:
    for item in found:
        if isinstance(item, LogRecord):
            yield item
        else:
            _logger.warning("line %d of %s is left out: %s", item.line, ascii(name), item.reason)


def _pairs(source: str | Path | IO[str] | IO[bytes], name: str) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    return ((record.input, record.result) for record in _warned(_lines(source), name))


def _check_version(fields: dict[str, Json]) -> None:
    version = fields["version"] if "version" in fields else fields.get("v")
    if _is_number(version) and version == VERSION:
        return
    if _is_number(version) and version == 0.1:
        _refuse("it is of version 0.1, from before TVM 0.7, whose tasks and template keys have no counterpart in 0.2; tune that workload again")
    if version is None:
        _refuse("it has no version")
    _refuse(f"its version is {_brief(ascii(version)) if _is_number(version) else _kind(version)}; {VERSION} is read")


def _read_input(fields: Json, config: Json) -> MeasureInput:
    if not isinstance(fields, list) or len(fields) != 4:
        _refuse(f"its input is {_kind(fields)}, not [target, task, args, kwargs]")
    target, name, args, kwargs = fields
    for word, value, kind, wanted in ("target", target, str, "a text"), ("task", name, str, "a text"), ("args", args, list, "a list"):
        if not isinstance(value, kind):
            _refuse(f"its {word} is {_kind(value)}, not {wanted}")
    if not isinstance(kwargs, dict):
        _refuse(f"its kwargs is {_kind(kwargs)}, not an object")
    if not isinstance(config, dict):
        _refuse(f"its config is {_kind(config)}, not an object")
    try:
        values = ConfigEntity.from_json_dict(config)
    except ConfigError as error:
        _refuse(f"its config cannot be used ({error})")
    frozen = {key: _frozen(value) for key, value in kwargs.items()}
    return MeasureInput(target_text.modern(cast(str, target)), Task(cast(str, name), tuple(map(_frozen, cast("list[Json]", args))), frozen), values)


def _read_result(fields: Json) -> MeasureResult:
    if not isinstance(fields, list) or len(fields) != 4:
        _refuse(f"its result is {_kind(fields)}, not [costs, error_no, all_cost, timestamp]")
    costs, error_no, all_cost, timestamp = fields
    if not isinstance(costs, list) or not costs or not all(_is_number(cost) and cost >= 0 for cost in costs):
        _refuse("its costs are not a list of seconds")
    if not isinstance(error_no, int) or isinstance(error_no, bool) or error_no not in list(MeasureErrorNo):
        _refuse(f"its error_no is {_brief(ascii(error_no)) if _is_number(error_no) else _kind(error_no)}, not one of 0 to {max(MeasureErrorNo)}")
    for word, value in ("all_cost", all_cost), ("timestamp", timestamp):
        if not _is_number(value):
            _refuse(f"its {word} is {_kind(value)}, not seconds")
    return MeasureResult(tuple(cast("list[float]", costs)), error_no, cast(float, all_cost), cast(float, timestamp))


def _is_number(value: object) -> TypeGuard[float]:
    """A number that a float can hold: JSON's may be of any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _finite(text: str) -> float:
    # 1e999 would be read as infinity, which JSON cannot write again.
    number = float(text)
    return number if math.isfinite(number) else _no_number(_brief(text))


def _nested_within(value: object, depth: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth >= 0 and all(_nested_within(item, depth - 1) for item in items)


def _frozen(value: Json) -> Json:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _described(record: LogRecord) -> str:
    task, result = record.input.task, record.result
    outcome = f"{result.mean_cost:.4g} s" if result.error_no == MeasureErrorNo.NO_ERROR else MeasureErrorNo(result.error_no).name
    return f"{record.input.target!a} {task.name!a}{task.args!a} {record.input.config!a} -> {outcome}"


_REFUSAL = "asked to read a log line, but "


def _refuse(reason: str) -> NoReturn:
    raise RecordError(_REFUSAL + reason)


def _refuse_pickle(protocol: str) -> None:
    if protocol != "json":
        raise RecordError(f"asked for log protocol {protocol!r}; only 'json' is read and written (pickled lines run code when they are read)")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _kind(value: object) -> str:
    kinds = {type(None): "null", bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    size = f" of {len(value)}" if isinstance(value, list) else ""
    return kinds.get(type(value), type(value).__name__) + size


def _brief(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
