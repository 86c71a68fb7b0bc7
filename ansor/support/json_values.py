"""JSON from untrusted files: length, nesting and numbers are bounded, and an error message says what cannot be used."""

import json
import math
from collections.abc import Sequence
from typing import NoReturn, TypeAlias, TypeGuard

from ansor.errors import RecordError

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | dict[str, Json]"

LONGEST = 1 << 20
"""The most characters of a text that is parsed."""

DEEPEST = 50
"""The deepest nesting of lists that is read."""

REFUSAL = "asked to read a log line, but "
"""The beginning of RecordErrors about lines."""

_DEEP = f"its lists are nested more than {DEEPEST} deep"


def parse(text: str) -> object:
    """The value of a JSON text. Raises RecordError, with the reason, unless every number is finite and the nesting is within DEEPEST."""
    if len(text) > LONGEST:
        refuse(f"it has {len(text)} characters, the longest that is read has {LONGEST}")
    try:
        value: object = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        refuse(_DEEP)
    except ValueError as error:
        refuse(f"it is not JSON ({brief(str(error))})")
    return value if _nested_within(value, DEEPEST) else refuse(_DEEP)


def refuse(reason: str) -> NoReturn:
    """Raise the RecordError for a line that cannot be read."""
    raise RecordError(REFUSAL + reason)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number that a float can hold: numbers in JSON may have any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def frozen(value: Json) -> Json:
    """The value with all lists, including nested ones, as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def kind(value: object) -> str:
    """The kind of a value, for messages: `a list of 3`."""
    kinds = {type(None): "null", bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    size = f" of {len(value)}" if isinstance(value, list) else ""
    return kinds.get(type(value), type(value).__name__) + size


def told(value: object) -> str:
    """A number or a text, shortened and printable; the kind of any other value."""
    if is_number(value):
        return brief(ascii(value))
    return f"the text {brief(ascii(value))}" if isinstance(value, str) else kind(value)


def brief(text: str) -> str:
    """At most 80 characters."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _finite(text: str) -> float:
    # 1e999 would be read as infinity, which JSON cannot write again.
    number = float(text)
    return number if math.isfinite(number) else _no_number(brief(text))


def _nested_within(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):  # level by level, as a call for each value would take longer than reading it did
        level = [item for one in level if isinstance(one, list | dict) for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return True
    return False


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
