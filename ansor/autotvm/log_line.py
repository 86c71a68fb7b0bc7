"""One log line of AutoTVM, there and back. Source: AutoTVM 0.9, `autotvm.record`; version 0.1 as TVM 0.6 wrote it.

    {"input": ["llvm", "matmul", [512, ["TENSOR", [512, 512], "float32"]], {}],
     "config": {"index": 193, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], ["unroll", "ot", false]]},
     "result": [[0.0012], 0, 0.8, 1650000000.0], "version": 0.2, "tvm_version": "0.9.0"}                        (on one line)

Lines are data that strangers wrote: nothing in them is executed, and numbers, nesting and length are bounded. Lists become tuples.
Pickled lines are refused: reading them runs code.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeGuard, cast

from ansor.autotvm import target_text
from ansor.autotvm.entities import Json
from ansor.autotvm.measured import MeasureErrorNo, MeasureInput, MeasureResult, Task
from ansor.autotvm.space import ConfigEntity
from ansor.errors import ConfigError, RecordError

VERSION = 0.2
OLD_VERSION = 0.1
FAILED_COST = 1e9
LONGEST = 1 << 20
"""Characters of the longest line that is parsed."""

DEEPEST = 50
"""Lists in lists that are read."""

REFUSAL = "asked to read a log line, but "
"""What the sentences of RecordErrors about lines start with."""

_DEEP = f"its lists are nested more than {DEEPEST} deep"
_FIELDS = ("input", "config", "result", "version", "tvm_version")


@dataclass(frozen=True)
class LogRecord:
    """One line: what was measured, what came out, the version that wrote it, and fields that we do not know."""

    input: MeasureInput
    result: MeasureResult
    tvm_version: str = ""
    others: Mapping[str, Json] = field(default_factory=dict)


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json", *, tvm_version: str = "", others: Mapping[str, Json] | None = None) -> str:
    """The log line of a measurement, without its newline. A failure's costs are written as [1e9].

    Raises RecordError for the protocol "pickle", for values that JSON cannot hold (objects, NaN), and for `others` with the name of a field.
    """
    _refuse_pickle(protocol)
    if others and not others.keys().isdisjoint(_FIELDS):
        raise RecordError(f"asked to log the other fields {', '.join(others)}; name them unlike {', '.join(_FIELDS)}")
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


def read_line(row: str, *, old: bool = False) -> LogRecord:
    """All of a log line. Raises RecordError with the reason when it cannot be used.

    With `old`, lines of version 0.1 (before TVM 0.7) are read, too. Their workloads and template keys, which 0.2 has no place for, are among `others`,
    their tasks have the names of then, and as templates have changed, their indices are of spaces that are no more: the values count.
    """
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
    if _is_number(fields.get("v")) and fields["v"] == OLD_VERSION and "version" not in fields:
        return _read_old(fields) if old else _refuse("it is of version 0.1, from before TVM 0.7; such lines are read by record.load(..., old=True)")
    _check_version(fields)
    missing = [name for name in ("input", "config", "result") if name not in fields]
    if missing:
        _refuse(f"it has no {', no '.join(missing)}")
    tvm_version = fields.get("tvm_version", "")
    if not isinstance(tvm_version, str):
        _refuse(f"its tvm_version is {_kind(tvm_version)}, not a text")
    others = {name: value for name, value in fields.items() if name not in _FIELDS}
    return LogRecord(_read_input(fields["input"], fields["config"]), _read_result(fields["result"]), tvm_version, others)


def _check_version(fields: dict[str, Json]) -> None:
    version = fields.get("version", fields.get("v"))
    if _is_number(version) and version == VERSION:
        return
    if version is None:
        _refuse("it has no version")
    _refuse(f"its version is {_brief(ascii(version)) if _is_number(version) else _kind(version)}; {VERSION} is read")


def _read_old(fields: dict[str, Json]) -> LogRecord:
    """A line of version 0.1: `{"i": [target, task, args, kwargs, workload, {"i": index, "c": code_hash, "e": entity, "t": template key}], "r": result}`."""
    held, result = fields.get("i"), fields.get("r")
    if not isinstance(held, list) or len(held) != 6:
        _refuse(f"its i is {_kind(held)}, not [target, task, args, kwargs, workload, config]")
    *task, workload, config = held
    if not isinstance(config, dict):
        _refuse(f"its config is {_kind(config)}, not an object")
    named = {name: config[key] for name, key in (("index", "i"), ("code_hash", "c"), ("entity", "e")) if key in config}
    others = {name: value for name, value in fields.items() if name not in ("i", "r", "v", *_FIELDS)}
    others |= {"workload": workload, "template_key": config.get("t")}
    return LogRecord(_read_input(task, named), _read_result(result), "", others)


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


def _refuse(reason: str) -> NoReturn:
    raise RecordError(REFUSAL + reason)


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
