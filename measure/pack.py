"""Kernel packs: the best programs of a network or an operator for one processor, as one file to share.

    {"pack":{"format":1,"package":"0.1.0","of":"resnet18","machine":{...},"tasks":[{"workload":"...","name":"...","uses":2.0}],"sha256":"..."}}
    {"workload":"...","target":"...","sketch":[...],"row":[3,0,12],"seconds":[0.0012],...}            (lines of a record file, the fastest of a task first)

The digest covers the rest of the first line and all lines after it. It only detects damage. Programs in a pack are checked like
any record, and never run as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from ansor.errors import RecordError
from ansor.measure.record import Header, Loaded, Reader, Record, package_version, record_line
from ansor.measure.record_fields import is_name
from ansor.support.names import known_names
from ansor.support.safe_files import write_whole
from ansor.support.text import counted, listed

FORMAT = 1
LARGEST = 32 << 20
"""The most bytes read from a file."""

MOST_PROGRAMS = 64
"""Per task."""

LONGEST_FACT, MOST_FACTS = 4000, 100
MOST_USES = 1e9
_START = b'{"pack":'


@dataclass(frozen=True)
class PackedTask:
    """A workload of a pack: its key, its display name, and how often the packed network runs it."""

    workload: str
    name: str
    uses: float = 1.0


@dataclass(frozen=True, repr=False)
class Pack:
    """of: what was packed, "" for whole record files; machine: facts about where the programs were measured; records: the fastest of a task first."""

    of: str
    package: str
    machine: tuple[tuple[str, str], ...]
    tasks: tuple[PackedTask, ...]
    records: tuple[Record, ...]

    @property
    def target(self) -> str:
        """The target of all programs, as in records."""
        return self.records[0].target

    def programs(self, workloads: Sequence[str]) -> list[Record]:
        """The programs of a workload, by any of its keys, the fastest first."""
        return [record for record in self.records if record.workload in workloads]

    def save(self, path: str | Path) -> None:
        """Write the file atomically. Raises RecordError if it cannot be written."""
        try:
            write_whole(Path(path), _written(self))
        except OSError as error:
            raise RecordError(f"a pack cannot be written to {path}: {error}; name another file") from error

    def __repr__(self) -> str:
        return f"Pack({self.of or 'records'}: {counted(len(self.records), 'program')} of {counted(len(self.tasks), 'task')} for {self.target})"


def make_pack(records: Sequence[Record], tasks: Sequence[PackedTask], machine: Sequence[tuple[str, str]], *, best: int = 3, of: str = "") -> Pack:
    """The `best` programs of each task. records: for one target on one kind of device. Raises RecordError if there are none or their costs are not comparable.
    """
    where = list(dict.fromkeys((record.target, record.device, record.unit) for record in records))
    if len(where) > 1:
        words = listed([f"{target}{'' if device == 'local' else f' on {device}'}" for target, device, _ in where])
        raise RecordError(f"asked to pack records of {len(where)} targets or devices ({words}), whose costs are not comparable; pack those of one")
    found = [(task, _fastest(records, task.workload, min(best, MOST_PROGRAMS))) for task in tasks]
    programs = [record for _, fastest in found for record in fastest]
    if not programs:
        raise RecordError(f"asked to pack {of or 'records'}, but there is no valid program; tune first")
    return Pack(of, package_version(), tuple(machine), tuple(task for task, fastest in found if fastest), tuple(programs))


def facts_of(header: Header | None) -> list[tuple[str, str]]:
    """What a header says about machine and compiler, without the flags, which may contain paths."""
    return [] if header is None else [*header.machine, ("compiler", header.compiler)]


def tasks_of(loaded: Iterable[Loaded]) -> list[PackedTask]:
    """All workloads of record files, each used once."""
    loaded = list(loaded)
    names = {key: name for one in loaded for key, name in one.names.items()}
    workloads = dict.fromkeys(record.workload for one in loaded for record in one.records)
    return [PackedTask(workload, names.get(workload, "")) for workload in workloads]


def _fastest(records: Iterable[Record], workload: str, most: int) -> list[Record]:
    """The fastest record of each program of a workload, the fastest program first, at most `most`."""
    timed = sorted((one for one in records if one.workload == workload and one.costs), key=lambda record: record.cost)
    programs: dict[tuple[object, ...], Record] = {}
    for record in timed:
        programs.setdefault((record.algorithm, record.sketch, record.row), record)
    return list(programs.values())[:most]


def _written(pack: Pack) -> bytes:
    about = {"format": FORMAT, "package": pack.package, "of": pack.of, "machine": dict(pack.machine), "tasks": [asdict(task) for task in pack.tasks]}
    lines = b"".join(map(record_line, pack.records))
    return _head({**about, "sha256": _digest(about, lines)}) + lines


def _head(about: dict[str, object]) -> bytes:
    return json.dumps({"pack": about}, separators=(",", ":")).encode() + b"\n"


def _digest(about: dict[str, object], lines: bytes) -> str:
    return hashlib.sha256(_head(about) + lines).hexdigest()


@known_names()
def load_pack(path: str | Path) -> Pack:
    """Read a pack. Raises RecordError for anything else: another file, another version, a damaged or too large one."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise RecordError(f"a pack cannot be read from {path}: {error}; name a file that `ansor pack create` wrote") from error
    if not content.startswith(_START):
        raise RecordError(f"{path} is not a kernel pack; name a file that `ansor pack create` wrote")
    if len(content) > LARGEST:
        raise RecordError(f"{path} has more than {LARGEST >> 20} MiB, which no kernel pack needs; pack fewer programs with --best")
    try:
        return _pack_of(content)
    except _Refused as why:
        raise RecordError(f"{path} {why}") from None


class _Refused(Exception):
    """What is wrong with a pack, and what to do."""


def _damaged(what: str) -> _Refused:
    return _Refused(f"is damaged: {what}; get it again from where it came from")


def _pack_of(content: bytes) -> Pack:
    head, _, lines = content.partition(b"\n")
    try:
        about = json.loads(head)["pack"]
    except (ValueError, KeyError, TypeError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise _damaged("its first line cannot be read")
    if about.get("format") != FORMAT:
        raise _Refused(f"is a kernel pack of format {str(about.get('format')):.20}, and this version of ansor reads format {FORMAT}; "
                       "install the version that wrote it, or create the pack again")
    if _digest({key: value for key, value in about.items() if key != "sha256"}, lines) != about.get("sha256"):
        raise _damaged("its digest does not match its content")
    tasks = _tasks(about.get("tasks"))
    records = _records(lines, {task.workload for task in tasks})
    machine = about.get("machine")
    if not _is_text(about.get("of")) or not _is_text(about.get("package")) or not _are_facts(machine):
        raise _damaged("its first line does not say what was packed, and where it was measured")
    return Pack(about["of"], about["package"], tuple(cast(dict[str, str], machine).items()), tasks, records)


def _tasks(value: object) -> tuple[PackedTask, ...]:
    if not isinstance(value, list) or not value or not all(map(_is_task, value)) or len({one["workload"] for one in value}) != len(value):
        raise _damaged("its tasks are not a list of workloads, names and uses")
    return tuple(PackedTask(one["workload"], one["name"], float(one["uses"])) for one in value)


def _is_task(one: object) -> bool:
    if not isinstance(one, dict) or one.keys() != {"workload", "name", "uses"}:
        return False
    uses = one["uses"]
    return _is_text(one["workload"]) and _is_text(one["name"]) and type(uses) in (int, float) and 0 < uses <= MOST_USES


def _are_facts(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= MOST_FACTS and all(_is_text(key) and _is_text(text) for key, text in value.items())


def _is_text(value: object) -> bool:
    return is_name(value) and len(cast(str, value)) <= LONGEST_FACT


def _records(lines: bytes, workloads: set[str]) -> tuple[Record, ...]:
    reader, found = Reader(None, None), list[Record]()
    for number, line in enumerate(lines.splitlines(keepends=True), 2):
        record = reader.read(line)
        if isinstance(record, str) or not record.costs:
            raise _damaged(f"line {number} is not a trial with times{f' ({record})' if isinstance(record, str) and record else ''}")
        found.append(record)
    if {record.workload for record in found} != workloads:
        raise _damaged("its programs do not match its tasks")
    if len({(record.target, record.device, record.unit) for record in found}) > 1:
        raise _damaged("its programs are for several targets, whose costs are not comparable")
    most = max(Counter(record.workload for record in found).values())
    if most > MOST_PROGRAMS or not _in_order(found):
        raise _damaged(f"it does not list at most {MOST_PROGRAMS} programs of each task, the fastest first")
    return tuple(found)


def _in_order(records: Sequence[Record]) -> bool:
    """Whether each workload's programs are sorted, the fastest first."""
    last: dict[str, float] = {}
    for record in records:
        if record.cost < last.get(record.workload, 0.0):
            return False
        last[record.workload] = record.cost
    return True

