"""Values of JSON that strangers wrote: length, nesting and numbers are bounded, and what cannot be used is refused with a sentence."""

import json
import math
from collections.abc import Sequence
from typing import NoReturn, TypeAlias, TypeGuard

from ansor.errors import RecordError

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | dict[str, Json]"

LONGEST = 1 << 20
"""Characters of the longest text that is parsed."""

DEEPEST = 50
"""Lists in lists that are read."""

REFUSAL = "asked to read a log line, but "
"""What the sentences of RecordErrors about lines start with."""

_DEEP = f"its lists are nested more than {DEEPEST} deep"


def parse(text: str) -> object:
    """What a text of JSON holds; every number is finite and every nesting within DEEPEST. Raises RecordError with the reason otherwise."""
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
    """Raise the RecordError that a line cannot be read."""
    raise RecordError(REFUSAL + reason)


def is_number(value: object) -> TypeGuard[float]:
    """A number that a float can hold: JSON's may be of any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def frozen(value: Json) -> Json:
    """Lists, and lists in them, as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def kind(value: object) -> str:
    """What a value is, for a sentence: `a list of 3`."""
    kinds = {type(None): "null", bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    size = f" of {len(value)}" if isinstance(value, list) else ""
    return kinds.get(type(value), type(value).__name__) + size


def told(value: object) -> str:
    """A number or a text itself, in short and in printable characters, and otherwise what it is."""
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
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth >= 0 and all(_nested_within(item, depth - 1) for item in items)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
