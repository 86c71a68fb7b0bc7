"""The records of a task in a file, and the records that do not count here, by reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

from ansor.measure.record import NORMAL, Json, Record, load
from ansor.measure.record_target import difference, is_for, is_of, options_text
from ansor.search.tuner import Outcome, Pick
from ansor.support.text import counted
from ansor.targets.base import Target
from ansor.targets.unit import SECONDS, Unit
from ansor.tasks.origins import origin_of
from ansor.tasks.sketch_space import SketchSpace

OTHER_TARGET = "made for another target"
"""Begins the reason for records of other target options. A file may hold several targets, just as it may hold several workloads."""

OTHER_DEVICE = "measured on another device"
"""Begins the reason for records whose costs are not comparable. A file may hold records of several devices."""

OTHER_NAMES = "recorded with other names of tensors or axes"
"""The reason for records of the same computation, declared with other names: the steps of a sketch name stages and loops."""

ASKED = ("which are not searched here", "not as pinned")
"""Ends of reasons that follow from what the caller asked for."""


class HasWorkloads(Protocol):
    """The part of a task that its records concern."""

    @property
    def workload_keys(self) -> tuple[str, ...]: ...

    @property
    def target(self) -> Target: ...

    @property
    def spaces(self) -> tuple[SketchSpace, ...]: ...

    @property
    def pins(self) -> tuple[object, ...]: ...


@dataclass(frozen=True)
class RecordedTrials:
    """What a file knows about a task: the outcomes that apply here, and how many records of the workload do not, by reason."""

    known: list[tuple[Outcome, Record]]
    left_out: dict[str, int]
    unit: Unit = SECONDS

    @property
    def best(self) -> Outcome | None:
        """The fastest outcome; None without a valid one."""
        valid = [outcome for outcome, _ in self.known if outcome.cost is not None]
        return min(valid, key=lambda outcome: outcome.cost or 0.0) if valid else None

    def without(self, targets: Collection[str]) -> RecordedTrials:
        """The same, but records of these targets do not count as left out."""
        reasons = tuple(f"{_made_for(target)}, here " for target in targets)
        return replace(self, left_out={reason: count for reason, count in self.left_out.items() if not reason.startswith(reasons)})


@dataclass(frozen=True)
class _File:
    records: Mapping[str, list[Record]]  # by workload
    damaged: Mapping[str, int]  # lines, by reason


@lru_cache(maxsize=1)
def _read(path: Path, size: int, changed: int) -> _File:
    """A file, read once for all tasks of a network, and again when `size` or `changed` (nanoseconds) differs."""
    found: dict[str, list[Record]] = {}
    loaded = load(path)
    for record in loaded.records:
        found.setdefault(record.workload, []).append(record)
    return _File(found, {reason: count for reason, count in loaded.skipped.items() if reason not in NORMAL})


def _file(records: str | Path) -> _File:
    path = Path(records)
    state = path.stat()
    return _read(path, state.st_size, state.st_mtime_ns)


def recorded_outcomes(task: HasWorkloads, records: str | Path, device: tuple[str, Unit] | None = None) -> RecordedTrials:
    """What a file knows about a task on its target, for one device model and unit; by default those of most records."""
    of_workload = [record for key in task.workload_keys for record in _file(records).records.get(key, [])]
    here = {text for text in {record.target for record in of_workload} if is_of(text, task.target)}
    of_target = [record for record in of_workload if record.target in here]
    counted_by = Counter((record.device, record.unit) for record in of_target)
    wanted = device or max(counted_by, key=counted_by.__getitem__, default=None)
    of_target = [record for record in of_target if (record.device, record.unit) == wanted]
    found = list(zip(outcomes_of(task, of_target), of_target, strict=True))
    left_out = Counter(outcome for outcome, _ in found if isinstance(outcome, str))
    others = Counter(record.target for record in of_workload if record.target not in here)
    for text, count in others.items():
        left_out[_why_elsewhere(text, task.target)] += count
    for (model, unit), count in counted_by.items():
        if (model, unit) != wanted:
            left_out[f"{OTHER_DEVICE} ({model}, in {unit})"] += count
    known = [(outcome, record) for outcome, record in found if isinstance(outcome, Outcome)]
    return RecordedTrials(known, dict(left_out), SECONDS if wanted is None else wanted[1])


def outcomes_of(task: HasWorkloads, records: Sequence[Record]) -> list[Outcome | str]:
    """Records of a task as the tuner needs them, or why each does not count; the device is not checked."""
    numbers = {(space.algorithm, space.name): k for k, space in enumerate(task.spaces)} if records else {}
    why = lru_cache(partial(_why_unknown, task))  # a file has many records of each sketch
    return [_outcome_of(record, task, numbers, why) for record in records]


def _why_elsewhere(recorded: str, target: Target) -> str:
    """Why records with that target text do not count for the target on this machine."""
    return difference(recorded, target) if is_for(recorded, target) else f"{_made_for(options_text(recorded))}, here {target})"


def _made_for(target: str) -> str:
    """The beginning of the reason for records of that other target."""
    return f"{OTHER_TARGET} ({target}"


def damaged_lines(records: str | Path) -> Mapping[str, int]:
    """How many lines of a file are not records, by reason; their workload is unknown."""
    return _file(records).damaged


def say_left_out(left_out: Iterable[Mapping[str, int]], records: str | Path, say: Callable[[str], None], alarm: Callable[[str], None]) -> None:
    """Report how many records of a file do not count, and why: those of some tasks, and damaged lines. `alarm` gets one line about unexpected reasons, `say`
    one about expected ones: other target options, and what the caller excluded by pins, algorithms or templates."""
    total: Counter[str] = Counter()
    for reasons in (*left_out, damaged_lines(records)):
        total.update(reasons)
    for expected, tell in ((False, alarm), (True, say)):
        told = {reason: count for reason, count in total.most_common() if _is_expected(reason) is expected}
        if told:
            words = "; ".join(reason if len(told) == 1 else f"{reason} ({count})" for reason, count in told.items())
            tell(f"{records}: {counted(sum(told.values()), 'record')} left out: {words}")


def _is_expected(reason: str) -> bool:
    return reason.startswith((OTHER_TARGET, OTHER_DEVICE)) or reason.endswith(ASKED)


def _outcome_of(record: Record, task: HasWorkloads, numbers: Mapping[tuple[str, str], int], why: Callable[[str, str], str]) -> Outcome | str:
    """A record as the tuner needs it, or why it does not count."""
    name = json.dumps(record.sketch, separators=(",", ":"))
    index = numbers.get((record.algorithm, name))
    if index is None:
        return why(record.algorithm, name)
    space = task.spaces[index]
    if not space.holds(record.row):
        return "the sketch has no such row"
    if not space.allows(record.row):
        return "not as pinned"
    return Outcome(Pick(index, record.row), record.cost if record.costs else None, record.failure.kind if record.failure else None)


def _why_unknown(task: HasWorkloads, algorithm: str, name: str) -> str:
    """Why the task has no sketch of that name."""
    origin = origin_of(algorithm)
    of_origin = [space for space in task.spaces if origin_of(space.algorithm) == origin]
    if not of_origin:
        return f"programs of {origin}, which are not searched here"
    steps, own = _steps_of(name), [_steps_of(space.name) for space in of_origin]
    if steps not in own and nameless(steps) in map(nameless, own):
        return OTHER_NAMES
    return "sketches of rules that are not here (another version's, or your own)" + (", or not as pinned" if task.pins else "")


def _steps_of(name: str) -> Json:
    """The steps of a sketch, without the digest of its tables."""
    steps: Json = json.loads(name)
    return steps[:-1] if isinstance(steps, list) else steps


def nameless(steps: Json) -> Json:
    """The steps with each name replaced by the number of its first appearance: the same for declarations that differ only in names."""
    numbers: dict[str, int] = {}

    def numbered(value: Json) -> Json:
        if isinstance(value, str):
            return numbers.setdefault(value, len(numbers))
        return [numbered(item) for item in value] if isinstance(value, list) else value

    if not isinstance(steps, list):
        return steps
    return [[step[0], *(numbered(item) for item in step[1:])] if isinstance(step, list) and step else step for step in steps]
