"""Parses the fields that log lines of both tuners have. Refuses unusable values by RecordError, with a reason."""

from typing import NamedTuple, cast

from ansor.compat.common.outcome import MeasureErrorNo
from ansor.support.json_values import Json, is_number, kind, refuse, told
from ansor.targets.program_options import why_refused


class Outcome(NamedTuple):
    """The result of a measurement; times in seconds."""

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float


def read_outcome(fields: Json) -> Outcome:
    """A result from its list. Only a failure may lack costs."""
    costs, error_no, all_cost, timestamp = items(fields, "result", Outcome._fields)
    outcome = within(error_no, "error_no", max(MeasureErrorNo))
    if not isinstance(costs, list) or not all(is_number(cost) and cost >= 0 for cost in costs):
        refuse("its costs are not a list of seconds")
    if not costs and outcome == MeasureErrorNo.NO_ERROR:
        refuse("it has no costs, and no error")
    for word, value in ("all_cost", all_cost), ("timestamp", timestamp):
        if not is_number(value):
            refuse(f"its {word} is {told(value)}, not seconds")
    return Outcome(tuple(cast("list[float]", costs)), outcome, cast(float, all_cost), cast(float, timestamp))


def items(fields: Json, what: str, names: tuple[str, ...]) -> list[Json]:
    """The items of a list, which must have one for each name."""
    return fields if isinstance(fields, list) and len(fields) == len(names) else refuse(f"its {what} is {kind(fields)}, not [{', '.join(names)}]")


def within(value: Json, what: str, largest: int) -> int:
    """A whole number from 0 to `largest`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        refuse(f"its {what} is {told(value)}, not one of 0 to {largest}")
    return int(value)


def a_text(value: Json, what: str) -> str:
    """A text, or a refusal."""
    return value if isinstance(value, str) else refuse(f"its {what} is {kind(value)}, not a text")


def a_target(value: Json, what: str) -> str:
    """A target's text, which may not name a program."""
    text = a_text(value, what)
    reason = why_refused(text)
    return refuse(f"its {what} {reason}") if reason else text
