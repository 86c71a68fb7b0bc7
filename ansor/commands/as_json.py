"""`--json` of the commands: their output as one JSON value on stdout. Other messages go to stderr."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping

from rich.console import Console

from ansor.commands.common import make_console
from ansor.targets.unit import Unit


def notes_of(given: argparse.Namespace, console: Console) -> Console:
    """Where a command prints what is not part of its answer: stdout, or stderr with `--json`."""
    return make_console(stderr=True) if given.json else console


def say_json(console: Console, value: object) -> None:
    """Print the value as indented JSON, in colours on a terminal."""
    unicode = console.encoding.lower().startswith("utf")
    console.print_json(json.dumps(json_value(value), allow_nan=False), ensure_ascii=not unicode)


def json_value(value: object) -> object:
    """The value in a form that JSON can hold: dataclasses as objects, units as their text, numbers that are not finite as null, anything unknown as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Unit):
        return value.to_text()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: json_value(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_value(one) for key, one in value.items()}
    return [json_value(one) for one in value] if isinstance(value, Iterable) else str(value)
