"""Validates the fields of a line in a record file. Files are edited, damaged and sent by strangers: nothing invalid gets past `load`.

A line with an invalid value is skipped, with the name of its field as the reason; the rest of the file counts.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansor.measure.failure import KINDS
from ansor.measure.machine_trouble import is_trouble
from ansor.targets.unit import Unit

SHORTEST_SECONDS, LONGEST_SECONDS = 1e-10, 1e5
"""No call takes less than a tick of a 10 GHz clock, and no trial, with all its repeats, more than a day."""

LARGEST_COST = 1e18
"""The largest cost in units other than seconds: more instructions than a machine runs in ten years."""

MACHINE = "a failure of the machine, not of the program"

_WORDS = {
    "workload": "a string", "target": "a string", "algorithm": "a string", "sketch": "a list of steps",
    "row": "a list of whole numbers of at least 0", "seconds": f"a list of times from {SHORTEST_SECONDS:g} to {LONGEST_SECONDS:g} s",
    "costs": "a list of numbers above 0", "device": "a string", "unit": "a unit of cost",
    "failure": "null, or a known kind and a string", "cut_short": "true or false", "elapsed": "a number of seconds of at least 0",
    "timestamp": "a number of seconds of at least 0", "seed": "a whole number", "round": "a whole number of at least 0",
    "counters": "numbers of at least 0 by name",
    "library": "a string", "program": "a string", "ours_s": "a number of seconds above 0", "library_s": "a number of seconds above 0",
    "library_chosen": "true or false",
}  # fmt: skip


def damaged(field: str) -> str:
    """The reason for skipping a line with an invalid value in that field."""
    return f"damaged line: {field} is not {_WORDS[field]}"


NEITHER = "damaged line: it needs either times or a failure"


def wrong_in_head(workload: object, target: object, algorithm: object, sketch: object) -> str:
    """Why lines of that workload, target, algorithm and sketch are skipped; '' if they are not."""
    for field, value in (("workload", workload), ("target", target), ("algorithm", algorithm)):
        if not is_name(value):
            return damaged(field)
    return "" if isinstance(sketch, list) else damaged("sketch")


def wrong_about_device(device: object, unit: object) -> str:
    """Why lines of that device and unit are skipped; '' if they are not."""
    if not is_name(device) or not device:
        return damaged("device")
    return "" if isinstance(unit, str) and unit.isprintable() and Unit.is_text(unit) else damaged("unit")


def wrong_in_tail(tail: bytes, fields: Mapping[str, Any], in_seconds: bool = True) -> str:
    """Why a line is skipped because of the fields after its sketch; '' if it is not. `tail`: the text of `fields` from the row on;
    `in_seconds`: whether its costs are times, which have bounds.

    Called for a million lines: if a regular expression shows that the lists hold only numbers, these are not checked one by one.
    Raises KeyError for a missing field, TypeError for some of wrong kinds.
    """
    name = "seconds" if "seconds" in fields else "costs"
    row, costs, failure = fields["row"], fields[name], fields["failure"]
    if "counters" in fields and not _are_counters(fields["counters"]):
        return damaged("counters")
    if "measured_by" in fields and not is_name(fields["measured_by"]):
        return damaged("measured_by")
    if _NUMBERS_ONLY.match(tail) is None:
        if type(row) is not list or not all(is_whole(value) and value >= 0 for value in row):
            return damaged("row")
        if type(costs) is not list or not all(map(is_duration if in_seconds else is_cost, costs)):
            return damaged(name)
    if type(row) is not list or type(costs) is not list or type(sum(row)) is not int:  # if a key occurs twice, the later one counts
        return damaged("row")
    if costs and not (min(costs) >= SHORTEST_SECONDS and sum(costs) <= LONGEST_SECONDS if in_seconds else min(costs) > 0 and sum(costs) <= LARGEST_COST):
        return damaged(name)
    if failure is None:
        return _wrong_about(fields) if costs else NEITHER
    if type(failure) is not dict or failure["kind"] not in KINDS or type(failure["text"]) is not str:
        return damaged("failure")
    if costs:
        return NEITHER
    return _wrong_about(fields) or (MACHINE if is_trouble(failure["kind"], failure["text"]) else "")


_NUMBERS_ONLY = re.compile(rb'\[[0-9,]*\],"(?:seconds|costs)":\[[0-9.e,-]*\],"f')


def _wrong_about(fields: Mapping[str, Any]) -> str:
    elapsed, timestamp, seed, number = fields["elapsed"], fields["timestamp"], fields["seed"], fields["round"]
    kinds = (type(fields["cut_short"]), type(elapsed), type(timestamp), type(seed), type(number))
    # Usually one comparison is enough; which field is wrong matters only if it fails.
    if kinds == _USUAL and 0.0 <= elapsed < _ETERNITY and 0.0 <= timestamp < _ETERNITY and number >= 0:
        return ""
    if kinds[0] is not bool:
        return damaged("cut_short")
    if not is_duration(elapsed):
        return damaged("elapsed")
    if not is_duration(timestamp):
        return damaged("timestamp")
    if kinds[3] is not int:
        return damaged("seed")
    return "" if kinds[4] is int and number >= 0 else damaged("round")


_USUAL = (bool, float, float, int, int)
_ETERNITY = 1e12


def wrong_in_comparison(fields: Mapping[str, object]) -> str:
    """Why a comparison is skipped; '' if it is not. Raises KeyError for a missing field."""
    for field in ("workload", "target", "library", "program"):
        if not is_name(fields[field]):
            return damaged(field)
    for field in ("ours_s", "library_s"):
        if not is_duration(fields[field]) or not fields[field]:
            return damaged(field)
    if type(fields["library_chosen"]) is not bool:
        return damaged("library_chosen")
    return "" if is_duration(fields.get("timestamp", 0.0)) else damaged("timestamp")


def _are_counters(value: object) -> bool:
    return type(value) is dict and all(is_name(name) and is_cost(number) for name, number in value.items())


def is_name(value: object) -> bool:
    """A printable text, without control characters or lone surrogates."""
    return type(value) is str and value.isprintable()


def is_duration(value: object) -> bool:
    """Seconds: a finite number of at least 0."""
    return (type(value) is float or type(value) is int) and 0 <= value < _ETERNITY  # NaN fails both comparisons


def is_cost(value: object) -> bool:
    """A finite number of at least 0, in any unit."""
    return (type(value) is float or type(value) is int) and 0 <= value <= LARGEST_COST


def is_whole(value: object) -> bool:
    """An integer, not a bool."""
    return type(value) is int


def not_ours(path: Path, start: bytes) -> str:
    """What a file is that begins with `start`, which is no record: a log of TVM's, recognised by its first characters, or something else."""
    first = start.lstrip().partition(b"\n")[0].decode(errors="replace")
    tvm = re.match(r'\{"(i|input)": ?\[', first)
    if tvm is not None:
        of = "AutoTVM" if tvm[1] == "input" else "TVM's auto-scheduler"
        return f"{path} is not a record file but a log of {of}; `ansor convert {path} OUT.jsonl` makes records of it, and `ansor record -i {path}` prints it"
    return f"{path} is not a record file: its first line is {first[:60]!r}; name another file"
