"""What a record file knows of a task, and what it holds of it that does not count here, by reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ansor.measure.record import NORMAL, Record, load
from ansor.origins import origin_of
from ansor.record_target import is_for, is_of, record_target
from ansor.search.tuner import Outcome, Pick
from ansor.task import SearchTask
from ansor.text import counted

OTHER_TARGET = "made for another target"
"""How the reason begins for records of other target options. A file may well hold several, as it may hold several workloads."""

OTHER_MACHINE = "made on another processor or by another compiler"
"""How the reason begins for records of the same target options that do not count here."""

ASKED = ("which are not searched here", "not as pinned")
"""How reasons end that are what the caller asked for."""


@dataclass(frozen=True)
class Recorded:
    """What a file knows of a task: outcomes that apply here, and how many records of the workload do not, by reason."""

    known: list[tuple[Outcome, Record]]
    left_out: dict[str, int]


@dataclass(frozen=True)
class _File:
    records: Mapping[str, list[Record]]  # by workload
    damaged: Mapping[str, int]  # lines, by reason


@lru_cache(maxsize=1)
def _read(path: Path, size: int, changed: int) -> _File:
    """A file, read once for all tasks of a network; `size` and `changed` (nanoseconds) tell when to read it again."""
    found: dict[str, list[Record]] = {}
    loaded = load(path)
    for record in loaded.records:
        found.setdefault(record.workload, []).append(record)
    return _File(found, {reason: count for reason, count in loaded.skipped.items() if reason not in NORMAL})


def _file(records: str | Path) -> _File:
    path = Path(records)
    state = path.stat()
    return _read(path, state.st_size, state.st_mtime_ns)


def recorded_outcomes(task: SearchTask, records: str | Path) -> Recorded:
    """What a file knows of a task on its target."""
    of_workload = _file(records).records.get(task.workload_key, [])
    here = {text for text in {record.target for record in of_workload} if is_of(text, task.target)}
    of_target = [record for record in of_workload if record.target in here]
    numbers = {(space.algorithm, space.name): k for k, space in enumerate(task.spaces)} if of_target else {}
    found = [(_outcome_of(record, task, numbers), record) for record in of_target]
    left_out = Counter(outcome for outcome, _ in found if isinstance(outcome, str))
    for record in of_workload:
        if record.target not in here:
            reason = f"{OTHER_MACHINE} than" if is_for(record.target, task.target) else f"{OTHER_TARGET} than"
            left_out[f"{reason} {record_target(task.target)}: {record.target}"] += 1
    return Recorded([(outcome, record) for outcome, record in found if isinstance(outcome, Outcome)], dict(left_out))


def damaged_lines(records: str | Path) -> Mapping[str, int]:
    """How many lines of a file are no records, by reason; of which workload they were cannot be told."""
    return _file(records).damaged


def say_left_out(left_out: Iterable[Mapping[str, int]], records: str | Path, say: Callable[[str], None], alarm: Callable[[str], None]) -> None:
    """How many records of a file do not count, and why: those of some tasks, and lines that are damaged. `alarm` gets one line about what nobody expects,
    `say` one about what is as it should be: records of other target options, and what the caller narrowed down by pins, algorithms, templates."""
    total: Counter[str] = Counter()
    for reasons in (*left_out, damaged_lines(records)):
        total.update(reasons)
    for expected, tell in ((False, alarm), (True, say)):
        told = {reason: count for reason, count in total.most_common() if _is_expected(reason) is expected}
        if told:
            words = "; ".join(reason if len(told) == 1 else f"{reason} ({count})" for reason, count in told.items())
            tell(f"{records}: {counted(sum(told.values()), 'record')} left out: {words}")


def _is_expected(reason: str) -> bool:
    return reason.startswith(OTHER_TARGET) or reason.endswith(ASKED)


def _outcome_of(record: Record, task: SearchTask, numbers: Mapping[tuple[str, str], int]) -> Outcome | str:
    """A record as the tuner wants it, or why it does not count."""
    index = numbers.get((record.algorithm, json.dumps(record.sketch, separators=(",", ":"))))
    if index is None:
        origin = origin_of(record.algorithm)
        if origin not in {origin_of(space.algorithm) for space in task.spaces}:
            return f"they are programs of {origin}, which are not searched here"
        return "they name sketches that do not exist in this version" + (", or are not as pinned" if task.pins else "")
    space = task.spaces[index]
    if not space.holds(record.row):
        return "their rows are none of their sketch's programs"
    if not space.allows(record.row):
        return "they are not as pinned"
    return Outcome(Pick(index, record.row), record.latency_s if record.seconds else None, record.failure.kind if record.failure else None)
