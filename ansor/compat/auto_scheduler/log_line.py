r"""Reads and writes one log line of TVM's auto-scheduler. Source: TVM 0.9, `auto_scheduler`, versions v0.1 to v0.6.

    {"i": [["[\"matmul\", 512, 512, 512]", "llvm -keys=cpu", [8, 64, 64, 0, 0, 0, 0, 0], "", 1, []],
           [[], [["SP", 2, 0, 512, [8], 1], ["AN", 2, 0, 3]]]],
     "r": [[0.0012], 0, 0.8, 1607112214], "v": "v0.6"}                                                          (on one line)

The task has 2 elements in v0.1 and v0.2, 3 in v0.3, 4 in v0.4, 5 in v0.5 and 6 in v0.6 (5 in some lines of v0.6). `steps` lists the steps.
Lines are untrusted data: nothing in them is executed, a target in them may not name a program (`-cc`), and numbers, nesting and length are bounded.
"""

import json
from dataclasses import astuple, dataclass, replace
from typing import cast

from ansor.compat.auto_scheduler.measured import LayoutRewriteOption, MeasureInput, MeasureResult, RecordedState, RecordedTask
from ansor.compat.auto_scheduler.steps import LARGEST, step_from_list
from ansor.compat.auto_scheduler.target_text import of_any as target_text
from ansor.compat.common.hardware import HardwareParams
from ansor.compat.common.log_fields import a_target, a_text, items, read_outcome, within
from ansor.errors import RecordError
from ansor.support.json_values import Json, kind, parse, refuse, told

VERSIONS = ("v0.1", "v0.2", "v0.3", "v0.4", "v0.5", "v0.6")
_FIELDS = ("i", "r", "v")
_TASK = "[workload_key, target, hardware_params, target_host, layout_rewrite_option, task_input_names]"


@dataclass(frozen=True)
class LogRecord:
    """One line: the input, the result, and the version that wrote it."""

    input: MeasureInput
    result: MeasureResult
    version: str = VERSIONS[-1]


def read_line(row: str) -> LogRecord:
    """Parse a log line. Raises RecordError with the reason if it cannot be used."""
    fields = parse(row)
    if not isinstance(fields, dict):
        refuse(f"it is {kind(fields)}, not an object")
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        refuse(f"it has no {', no '.join(missing)}")
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        refuse(f"it has the field {told(unknown[0])}; fields are {', '.join(_FIELDS)}")
    version = fields["v"]
    if version not in VERSIONS:
        refuse(f"its version is {told(version)}; {VERSIONS[0]} to {VERSIONS[-1]} are read")
    task, state = items(fields["i"], "input", ("task", "state"))
    return LogRecord(MeasureInput(_read_task(task), _read_state(state)), _read_result(fields["r"]), cast(str, version))


def write_line(record: LogRecord) -> str:
    """The log line of a record, without its newline, as TVM writes it. Reading a line and writing it back gives the same line.

    Raises RecordError for anything that a line cannot hold: values of other types, numbers out of bounds, a task with a field set after one that is None.
    """
    record = replace(record, input=record.input.recorded)
    task, result = record.input.task, record.result
    fields = [task.workload_key, task.target, task.hardware_params and astuple(task.hardware_params), task.target_host, task.layout_rewrite_option,
              task.task_input_names]  # fmt: skip
    given = fields[: next((place for place, value in enumerate(fields) if value is None), len(fields))]
    steps = [step.to_list() for step in record.input.state.transform_steps]
    outcome = (result.costs, result.error_no, result.all_cost, result.timestamp)
    try:
        text = f'{{"i": {_text([given, [[], steps]])}, "r": {_text(outcome)}, "v": {_text(record.version)}}}'
        if read_line(text) == record:
            return text
    except (RecordError, TypeError, ValueError, RecursionError) as error:
        reason = str(error).removeprefix("asked to read a log line, but ")
        raise RecordError(f"asked to log a record of {task.workload_key!a:.200}, which a line cannot hold: {reason}; log plain values") from error
    raise RecordError(f"asked to log a record of {task.workload_key!a:.200}, which would read back differently; fill its task from the front, and use tuples")


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """The log line of a measurement, with its newline. Raises RecordError if a line cannot hold it."""
    return write_line(LogRecord(inp, res)) + "\n"


def load_record_from_string(record: str) -> tuple[MeasureInput, MeasureResult]:
    """Parse a log line. Raises RecordError with the reason if it cannot be used."""
    found = read_line(record)
    return found.input, found.result


def _read_task(fields: Json) -> RecordedTask:
    if not isinstance(fields, list) or not 2 <= len(fields) <= 6:
        refuse(f"its task is {kind(fields)}, not the first 2 to 6 of {_TASK}")
    if len(fields) == 5 and isinstance(fields[2], int):
        # TVM wrote this order for a while, but could not read it.
        fields = [*fields[:2], *fields[3:], fields[2]]
    size = len(fields)
    key, target, hardware, host, option, names = (fields[place] if place < size else None for place in range(6))
    told_host = a_target(host, "target_host") if size > 3 else None
    return RecordedTask(
        a_text(key, "workload_key"),
        target_text(a_target(target, "target"), told_host),
        _read_hardware(hardware) if size > 2 else None,
        told_host,
        LayoutRewriteOption(within(option, "layout_rewrite_option", max(LayoutRewriteOption))) if size > 4 else None,
        _read_names(names) if size > 5 else None,
    )


def _read_hardware(fields: Json) -> HardwareParams:
    if not isinstance(fields, list) or len(fields) != 8:
        refuse(f"its hardware_params is {kind(fields)}, not 8 numbers")
    for value in fields:
        if isinstance(value, bool) or not isinstance(value, int) or not -LARGEST - 1 <= value <= LARGEST:
            refuse(f"one of its hardware_params is {told(value)}, not a number of 32 bits")
    return HardwareParams(*cast("tuple[int, int, int, int, int, int, int, int]", tuple(fields)))


def _read_names(fields: Json) -> tuple[str, ...]:
    if not isinstance(fields, list):
        refuse(f"its task_input_names is {kind(fields)}, not a list")
    return tuple(a_text(name, "task_input_name") for name in fields)


def _read_state(fields: Json) -> RecordedState:
    stages, steps = items(fields, "state", ("stages", "steps"))
    if stages != []:
        refuse(f"its stages are {kind(stages)}, not the empty list")
    if not isinstance(steps, list):
        refuse(f"its steps are {kind(steps)}, not a list")
    return RecordedState(tuple(map(step_from_list, steps)))


def _read_result(fields: Json) -> MeasureResult:
    found = read_outcome(fields)
    return MeasureResult(found.costs, found.error_no, "", found.all_cost, found.timestamp)


def _text(value: object) -> str:
    """JSON that TVM can read: its reader does not accept `\\u`. Numbers as TVM writes them: with 6 digits, whole ones without a point."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        short = f"{value or 0.0:.6g}"  # drop the sign of zero: -0 would be read as the whole number 0
        return short if float(short) == value else f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else json.dumps(value, allow_nan=False)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    return json.dumps(value, allow_nan=False)
