"""Reads and writes one log line of AutoTVM. Source: AutoTVM 0.9, `autotvm.record`; version 0.1 as TVM 0.6 wrote it.

    {"input": ["llvm", "matmul", [512, ["TENSOR", [512, 512], "float32"]], {}],
     "config": {"index": 193, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], ["unroll", "ot", false]]},
     "result": [[0.0012], 0, 0.8, 1650000000.0], "version": 0.2, "tvm_version": "0.9.0"}                        (on one line)

Lines are untrusted data: nothing in them is executed, a target in them may not name a program (`-cc`), and numbers, nesting and length are bounded.
Lists become tuples. `pickled_line` reads lines of the protocol "pickle" without running them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.compat.autotvm import pickled_line
from ansor.compat.autotvm.measured import FAILED, MeasureInput, MeasureResult, Task
from ansor.compat.common import target_keys as target_text
from ansor.compat.common.log_fields import a_target, a_text, items, read_outcome
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.errors import ConfigError, RecordError
from ansor.support.json_values import Json, brief, frozen, is_number, kind, parse, refuse
from ansor.targets.program_options import without_programs
from ansor.templates.space import ConfigEntity

VERSION = 0.2
OLD_VERSION = 0.1

_FIELDS = ("input", "config", "result", "version", "tvm_version")


@dataclass(frozen=True)
class LogRecord:
    """One line: the input, the result, the version that wrote it, and unknown fields."""

    input: MeasureInput
    result: MeasureResult
    tvm_version: str = ""
    others: Mapping[str, Json] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The line, as `encode` writes it."""
        return encode(self.input, self.result, tvm_version=self.tvm_version, others=self.others)


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json", *, tvm_version: str = "", others: Mapping[str, Json] | None = None) -> str:
    """The log line of a measurement, without its newline. A failure's costs are written as [1e9], and a target without its compiler.

    protocol: "json", or "pickle", which omits `others`. Raises RecordError for any other protocol, for values that JSON cannot hold (objects, NaN), and for
    `others` with the name of a field.
    """
    _check_protocol(protocol)
    if others and not others.keys().isdisjoint(_FIELDS):
        raise RecordError(f"asked to log the other fields {', '.join(others)}; choose names other than {', '.join(_FIELDS)}")
    costs = result.costs if result.error_no == MeasureErrorNo.NO_ERROR else FAILED
    fields = {
        "input": [without_programs(inp.target), inp.task.name, inp.task.args, dict(inp.task.kwargs)],
        "config": inp.config.to_json_dict(),
        "result": [costs, int(result.error_no), result.all_cost, result.timestamp],
        "version": VERSION,
        "tvm_version": tvm_version,
        **(others or {}),
    }
    try:
        text = json.dumps(fields, allow_nan=False)
        return text if protocol == "json" else pickled_line.written(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        what = f"configuration {inp.config.index} of task {inp.task.name!a}"
        raise RecordError(f"asked to log {what}, which JSON cannot hold: {error}; log plain values") from error


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """Parse a log line. Raises RecordError with the reason if it cannot be used, and for a protocol other than "json" and "pickle"."""
    _check_protocol(protocol)
    record = read_line(row) if protocol == "json" else _read_fields(pickled_line.read(row))
    return record.input, record.result


def read_line(row: str, *, old: bool = False) -> LogRecord:
    """Parse a whole log line. Raises RecordError with the reason if it cannot be used.

    With `old`, also reads lines of version 0.1 (before TVM 0.7). `others` then holds their workloads and template keys, for which 0.2 has no fields. Tasks
    keep their old names. Their indices belong to spaces of old templates, so only the values count.
    """
    try:
        fields = parse(row)
    except RecordError:
        if row.count("\t") >= 3:
            refuse("it has tabs, as pickled lines do: decode(row, 'pickle') reads those, without running them")
        raise
    if not isinstance(fields, dict):
        refuse(f"it is {kind(fields)}, not an object")
    if is_number(fields.get("v")) and fields["v"] == OLD_VERSION and "version" not in fields:
        return _read_old(fields) if old else refuse("it is of version 0.1, from before TVM 0.7; read such lines with record.load(..., old=True)")
    return _read_fields(fields)


def _read_fields(fields: dict[str, Json]) -> LogRecord:
    _check_version(fields)
    missing = [name for name in ("input", "config", "result") if name not in fields]
    if missing:
        refuse(f"it has no {', no '.join(missing)}")
    tvm_version = fields.get("tvm_version", "")
    if not isinstance(tvm_version, str):
        refuse(f"its tvm_version is {kind(tvm_version)}, not a text")
    others = {name: value for name, value in fields.items() if name not in _FIELDS}
    return LogRecord(_read_input(fields["input"], fields["config"]), _read_result(fields["result"]), tvm_version, others)


def _check_version(fields: dict[str, Json]) -> None:
    version = fields.get("version", fields.get("v"))
    if is_number(version) and version == VERSION:
        return
    if version is None:
        refuse("it has no version")
    refuse(f"its version is {brief(ascii(version)) if is_number(version) else kind(version)}; {VERSION} is read")


def _read_old(fields: dict[str, Json]) -> LogRecord:
    """A line of version 0.1: `{"i": [target, task, args, kwargs, workload, {"i": index, "c": code_hash, "e": entity, "t": template key}], "r": result}`."""
    *task, workload, config = items(fields.get("i"), "i", ("target", "task", "args", "kwargs", "workload", "config"))
    if not isinstance(config, dict):
        refuse(f"its config is {kind(config)}, not an object")
    named = {name: config[key] for name, key in (("index", "i"), ("code_hash", "c"), ("entity", "e")) if key in config}
    others = {name: value for name, value in fields.items() if name not in ("i", "r", "v", *_FIELDS)}
    others |= {"workload": workload, "template_key": config.get("t")}
    return LogRecord(_read_input(task, named), _read_result(fields.get("r")), "", others)


def _read_input(fields: Json, config: Json) -> MeasureInput:
    target, name, args, kwargs = items(fields, "input", ("target", "task", "args", "kwargs"))
    target, name = a_target(target, "target"), a_text(name, "task")
    if not isinstance(args, list):
        refuse(f"its args is {kind(args)}, not a list")
    if not isinstance(kwargs, dict):
        refuse(f"its kwargs is {kind(kwargs)}, not an object")
    if not isinstance(config, dict):
        refuse(f"its config is {kind(config)}, not an object")
    try:
        values = ConfigEntity.from_json_dict(config)
    except ConfigError as error:
        refuse(f"its config cannot be used ({error})")
    named = {key: frozen(value) for key, value in kwargs.items()}
    return MeasureInput(target_text.modern(target), Task(name, tuple(map(frozen, args)), named), values)


def _read_result(fields: Json) -> MeasureResult:
    found = MeasureResult(*read_outcome(fields))
    return found if found.error_no == MeasureErrorNo.NO_ERROR else found._replace(costs=FAILED)


def _check_protocol(protocol: str) -> None:
    if protocol not in ("json", "pickle"):
        raise RecordError(f"asked for log protocol {protocol!r}; give 'json', or 'pickle' for lines of old logs")
