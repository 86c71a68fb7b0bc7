"""Trials on disk: append-only JSON lines that survive `kill -9`, and load fast.

    {"header":{"format":1,"package":"0.1.0","started":...,"machine":{...},"compiler":"...","flags":[...],"seed":0}}
    {"workload":"...","target":"...","sketch":[...],"row":[3,0,12],"seconds":[0.0012],"failure":null,"cut_short":false,
     "elapsed":0.3,"timestamp":1767225600.0,"seed":0,"round":2}                                       (on one line)
    {"workload":"...","target":"...","device":"qemu-aarch64","unit":"instructions","sketch":[...],"row":[3,0,12],"costs":[1.2e6],...}
    {"comparison":{"workload":"...","target":"...","library":"torch 2.9.0",...}}

Trials on devices other than this machine name the device's model and the unit of their costs. They may end with anything else the device counted:
"counters":{"stack_bytes_used":512.0}. Trials of a farm end with the device and its machine: "measured_by":"local on host7 (AMD EPYC 9R45)". If a program
uses an algorithm other than the declaration's own, its trial names the algorithm before the sketch: "algorithm":"winograd_f4".

Every session that appends writes a header first, so a file may hold several; a trial follows the header it was made
under. A line is one write to the end of the file, so writers in several processes do not mix their lines.
"""

import gc
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from sys import intern
from typing import Any, NamedTuple, TypeAlias

from ansor.codegen.building import Toolchain
from ansor.codegen.toolchain import processor_name
from ansor.errors import ArgumentError, RecordError
from ansor.measure.failure import Failure
from ansor.measure.record_fields import is_duration, is_name, is_whole, not_ours, wrong_about_device, wrong_in_comparison, wrong_in_head, wrong_in_tail
from ansor.measure.record_place import check_place, make_place, sync
from ansor.measure.record_view import RecordView
from ansor.support import settings
from ansor.support.closing import Closing
from ansor.support.names import known_names
from ansor.support.safe_files import sync_folder
from ansor.support.text import counted
from ansor.targets.base import LOCAL
from ansor.targets.unit import SECONDS, Unit, common_unit

FORMAT = FIRST_FORMAT = 1
DAMAGED_HEADER = "damaged header"
TORN, OTHER_WORKLOAD, OTHER_TARGET = "torn line", "other workload", "other target"
NOT_A_TRIAL, DAMAGED = "not a trial", "damaged line"
NORMAL = (OTHER_WORKLOAD, OTHER_TARGET)  # reasons other than a damaged line

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | dict[str, Json]"
_Head: TypeAlias = "tuple[str, str, Json, str, Unit, str]"  # workload, target, sketch, algorithm, unit, device
_ROW = b',"row":'
_HEADER = b'{"header":'
_COMPARISON = b'{"comparison":'
_TRIAL = b'{"workload":'
_HEAD_FIELDS = ("workload", "target", "sketch")
_TAIL_FIELDS = ("row", "seconds", "failure", "cut_short", "elapsed", "timestamp", "seed", "round")
_MARK = b"\xef\xbb\xbf"  # some editors put a byte order mark at the start of a file
MODEL = "cost_model"
LONGEST_NAME = 200  # characters of a workload's name
_START = 1 << 16  # bytes read to tell what a file is
_parse = json.JSONDecoder().decode  # json.loads guesses encodings first
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what a torn or edited line raises


class Record(NamedTuple):
    """One trial. A named tuple, because files hold a million of them."""

    workload: str  # the workload's key
    target: str  # canonical text of the target
    sketch: Json  # the sketch's steps as JSON, with tuples for lists, so that it can be compared and hashed
    row: tuple[int, ...]  # the choices
    costs: tuple[float, ...]  # of one call, one per repeat; empty for a failure
    failure: Failure | None = None
    cut_short: bool = False  # one coarse time of a clearly slow candidate
    elapsed: float = 0.0  # seconds the trial took
    timestamp: float = 0.0  # seconds since 1970
    seed: int = 0
    round: int = 0
    algorithm: str = ""  # the alternative declaration of the sketch; "" for the workload's own
    unit: Unit = SECONDS
    device: str = LOCAL  # the device's model: costs of one model are comparable
    counters: tuple[tuple[str, float], ...] = ()  # anything else the device counted, by name
    measured_by: str = ""  # a farm's device and its machine, for display; "" for the device itself

    @property
    def cost(self) -> float:
        """Median cost of one call; infinite for a failure."""
        return median(self.costs) if self.costs else float("inf")

    def __repr__(self) -> str:
        result = self.unit.text(self.cost) if self.failure is None and self.costs else f"failed: {self.failure and self.failure.kind}"
        return f"Record({self.workload[:8]}, {self.target}: {result}, row={self.row})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares our program for a workload with a library's kernel, or with another program of ours, both inside a network; says whether that runs the
    other one."""

    workload: str
    target: str
    library: str  # name and version; for a program of ours, its digest and the network's
    program: str  # digest of our sketch and row
    ours_s: float  # seconds of all its uses in one run of the network
    library_s: float
    library_chosen: bool
    timestamp: float = 0.0  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Header:
    """The conditions under which the trials after it were made."""

    compiler: str
    flags: tuple[str, ...]
    seed: int
    package: str
    machine: tuple[tuple[str, str], ...]  # processor, cores, system; and the cost model that picked programs, if any
    started: float
    format: int = FORMAT
    names: tuple[tuple[str, str], ...] = ()  # workload key -> display name; older files have none


@dataclass(frozen=True, slots=True, repr=False)
class Loaded(RecordView):
    """What a file holds: the requested records, its headers, and how many lines were skipped for which reason."""

    records: tuple[Record, ...]
    headers: tuple[Header, ...]
    skipped: dict[str, int]
    comparisons: tuple[Comparison, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """Workload key -> display name, if the file has names; the latest session's names win."""
        return {key: name for header in self.headers for key, name in header.names}

    def __repr__(self) -> str:
        left_out = f"; left out: {', '.join(f'{count} ({reason})' for reason, count in self.skipped.items())}" if self.skipped else ""
        return f"Loaded({counted(len(self.records), 'record')} of {counted(len({one.workload for one in self.records}), 'workload')}{left_out})"


def make_header(toolchain: Toolchain, *, seed: int = 0, names: Mapping[str, str] | None = None, model: str = "") -> Header:
    """A header for this machine, the current time and a toolchain. `names`: display names of workloads, by key; `model`: the cost model that picks programs."""
    machine = [("processor", processor_name()), ("cores", str(settings.cores())), ("system", f"{platform.system()} {platform.machine()}")]
    machine += [(MODEL, model)] if model else []
    return Header(toolchain.version, toolchain.flags, seed, package_version(), tuple(machine), time.time(), names=tuple((names or {}).items()))


def foreign_header(source: str) -> Header:
    """A header for trials made elsewhere, by an unknown compiler. `source`: where they are from."""
    return Header("unknown", (), 0, package_version(), (("source", source),), time.time())


def package_version() -> str:
    """The version of this package, as in files."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ansor")
    except PackageNotFoundError:
        return "unknown"


def round_to(seconds: float) -> float:
    """Rounded to whole milliseconds."""
    return int(seconds * 1000 + 0.5) / 1000


class RecordFile(Closing):
    """A file of records, open for appending; created if missing. Use it in a `with` statement, or call `close`.

    Raises RecordError if the file holds something else, has an unknown version or cannot be written. If a killed
    writer left a torn last line, that line is terminated first, so that nothing else is lost.
    """

    def __init__(self, path: str | Path, header: Header) -> None:
        self.path = Path(path)
        self._header: Header | None = header
        make_place(self.path)
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise RecordError(f"records cannot be written to {self.path}: {error}; name another file") from error
        try:
            _check_ours(os.pread(self._descriptor, _START, 0), self.path)
            size = os.lseek(self._descriptor, 0, os.SEEK_END)
            if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
                self._write(b"\n")
            if not size:
                sync_folder(self.path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, record: Record) -> None:
        """Write one trial; once this returns, it is on disk. Raises RecordError if the disk is full."""
        self._append(record_line(record))

    def append_comparison(self, comparison: Comparison) -> None:
        """Write one comparison, like `append`."""
        self._append(_dumps({"comparison": asdict(comparison)}).encode() + b"\n")

    def close(self) -> None:
        """Close the file; everything appended is already on disk."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def _append(self, line: bytes) -> None:
        if self._header is not None:
            self._write(header_line(self._header))
            self._header = None
        self._write(line)
        self._keep()

    def _keep(self) -> None:
        """Sync to disk, so that no trial is lost. A trial takes a hundred times as long, so this costs next to nothing."""
        try:
            sync(self._descriptor)
        except OSError as error:
            raise RecordError(f"{self.path}: a record could not be written to the disk: {error}") from error

    def _write(self, line: bytes) -> None:
        # One call per line: appends of several processes do not mix.
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise RecordError(f"{self.path}: a record could not be written: {error}") from error
        if written != len(line):
            raise RecordError(f"{self.path}: only {written} of {len(line)} bytes of a record could be written; is the disk full?")


def record_line(record: Record) -> bytes:
    """The line of a record, newline included. The order of fields is fixed: `load` splits lines at the row."""
    here = record.unit == SECONDS and record.device == LOCAL
    device = {} if here else {"device": record.device, "unit": record.unit.to_text()}
    algorithm = {"algorithm": record.algorithm} if record.algorithm else {}
    head = _dumps({"workload": record.workload, "target": record.target, **device, **algorithm, "sketch": record.sketch})
    failure = None if record.failure is None else {"kind": record.failure.kind, "text": record.failure.text}
    tail = _dumps({
        "row": record.row, "seconds" if here else "costs": record.costs, "failure": failure, "cut_short": record.cut_short,
        "elapsed": record.elapsed, "timestamp": record.timestamp, "seed": record.seed, "round": record.round,
        **({"counters": dict(record.counters)} if record.counters else {}), **({"measured_by": record.measured_by} if record.measured_by else {}),
    })  # fmt: skip
    return f"{head[:-1]},{tail[1:]}\n".encode()


def check_file(path: Path) -> None:
    """Raises RecordError for a file that holds something else or has an unknown version. Call it before any work. The file may be missing."""
    check_place(path)
    try:
        with path.open("rb") as file:
            _check_ours(file.read(_START), path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(f"records cannot be read from {path}: {error}; name another file") from error


@known_names("load_records")
def load(path: str | Path, *, workload: str | None = None, target: str | None = None) -> Loaded:
    """The records of a file, of one workload and one target if given.

    Raises RecordError if the file cannot be read, holds something else or has an unknown version; unusable lines are
    counted by reason in `Loaded.skipped`.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"asked for the records of {path!r:.80}, which is a {type(path).__name__}; give the path of a record file")
    # None of a million tuples is garbage: collecting while making them doubles the time.
    check_place(Path(path))
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(Path(path), Reader(workload, target))
    except OSError as error:
        why = ", which is not there; name a file that `ansor tune` wrote" if isinstance(error, FileNotFoundError) else f": {error}"
        raise RecordError(f"records cannot be read from {path}{why}") from error
    finally:
        if collecting:
            gc.enable()


def _load(path: Path, reader: "Reader") -> Loaded:
    headers: list[Header] = []
    skipped: Counter[str] = Counter()
    records: list[Record] = []
    comparisons: list[Comparison] = []
    with path.open("rb") as file:
        start = file.read(_START)
        _check_start(start, path)
        file.seek(0)
        if start.startswith(_MARK):
            file.seek(len(_MARK))
        for line in file:
            if not line.startswith((_TRIAL, _HEADER, _COMPARISON)):
                line = _as_written(line)
            if line.startswith(_HEADER):
                header = _read_header(line, path)
                if isinstance(header, str):
                    skipped[header] += 1
                else:
                    headers.append(header)
                continue
            found = reader.read_comparison(line) if line.startswith(_COMPARISON) else reader.read(line)
            if isinstance(found, Record):
                records.append(found)
            elif isinstance(found, Comparison):
                comparisons.append(found)
            elif found:
                skipped[found] += 1
    return Loaded(tuple(records), tuple(headers), dict(skipped), tuple(comparisons))


def _check_ours(start: bytes, path: Path) -> None:
    _check_start(start, path)
    first = _as_written(start.removeprefix(_MARK).partition(b"\n")[0])
    if first.startswith(_HEADER):  # even if it is damaged, the lines after it count
        _read_header(first, path)


def _check_start(start: bytes, path: Path) -> None:
    """Raises RecordError unless a file begins with a header or a trial, perhaps after pieces of them left by killed writers."""
    for line in filter(None, start.removeprefix(_MARK).splitlines()):
        if _as_written(line).startswith((_HEADER, _TRIAL)):
            return
        if not (_HEADER.startswith(line) or _TRIAL.startswith(line)):
            raise RecordError(not_ours(path, start))


def best(records: Iterable[Record], workload: str) -> Record | None:
    """The fastest record of a workload; None if none has a cost. Raises UnitError if costs are not comparable."""
    timed = [record for record in records if record.workload == workload and record.costs]
    if timed:
        common_unit(record.unit for record in timed)
    return min(timed, key=lambda record: record.cost, default=None)


class Reader:
    """Reads trial lines. The part before the row is the same in many lines and is parsed once."""

    def __init__(self, workload: str | None, target: str | None) -> None:
        self._workload = workload
        self._target = target
        self._heads: dict[bytes, _Head | str] = {}

    def read(self, line: bytes) -> Record | str:
        """The record of a line, or why it is skipped ('' for an empty line)."""
        found = self._read_cut(line)
        if found is not None:
            return found
        # Not our format: another tool wrote it, or it is not a trial at all.
        rewritten = _rewritten(line)
        return rewritten if isinstance(rewritten, str) else self._read_cut(rewritten) or DAMAGED

    def _read_cut(self, line: bytes) -> Record | str | None:
        """The record of a line in our format, or why it is skipped; None for any other line."""
        # Quotes in JSON strings are escaped, so a match is the key itself; ours is the last one.
        head, mark, tail = line.rpartition(_ROW)
        if not mark:
            return None
        known = self._heads.get(head)
        if known is None:
            known = self._read_head(head)
            if known is None:
                return None
            self._heads[head] = known
        if isinstance(known, str):
            return known
        try:
            return _read_tail(known, tail, _parse('{"row":' + tail.decode()))
        except _UNREADABLE:
            return None

    def _read_head(self, head: bytes) -> "_Head | str | None":
        try:
            fields = json.loads(head + b"}")
            workload, target, sketch, algorithm = fields["workload"], fields["target"], fields["sketch"], fields.get("algorithm", "")
            device, unit = fields.get("device", LOCAL), fields.get("unit", SECONDS.to_text())
            steps = frozen(sketch)
        except _UNREADABLE:
            return None
        wrong = wrong_in_head(workload, target, algorithm, sketch) or wrong_about_device(device, unit) or self._unwanted(workload, target)
        return wrong or (workload, target, steps, algorithm, Unit.from_text(unit), device)

    def read_comparison(self, line: bytes) -> Comparison | str:
        """The comparison of a line, or why it is skipped."""
        try:
            fields = json.loads(line)["comparison"]
            return wrong_in_comparison(fields) or self._unwanted(fields["workload"], fields["target"]) or Comparison(**fields)
        except _UNREADABLE:
            return TORN

    def _unwanted(self, workload: str, target: str) -> str:
        """Why records of that workload and target are skipped; '' if they are not."""
        if self._workload is not None and workload != self._workload:
            return OTHER_WORKLOAD
        if self._target is not None and target != self._target:
            return OTHER_TARGET
        return ""


def _as_written(line: bytes) -> bytes:
    """Normalises a line that another tool wrote differently: with spaces, or with fields in another order. Returns other lines unchanged."""
    if line.startswith((_TRIAL, _HEADER)):
        return line
    found = _rewritten(line)
    return line if isinstance(found, str) else found


def _rewritten(line: bytes) -> bytes | str:
    """A JSON object with the fields of a trial, a header or a comparison, in our format; for other lines, why they are skipped ('' for an empty one)."""
    if not line.strip():
        return ""
    try:
        fields = json.loads(line)
    except _UNREADABLE:
        return TORN if line.lstrip().startswith((b"{", b"\0")) else NOT_A_TRIAL  # a torn line keeps its start; a power loss leaves zeros
    if isinstance(fields, dict) and len(fields) == 1 and fields.keys() <= {"header", "comparison"}:
        return _dumps(fields).encode()
    if not isinstance(fields, dict) or not fields.keys() >= {"workload", "row"}:
        return NOT_A_TRIAL
    tail = tuple("costs" if name == "seconds" and "costs" in fields else name for name in _TAIL_FIELDS)
    missing = [name for name in (*_HEAD_FIELDS, *tail) if name not in fields]
    if missing:
        return f"{DAMAGED}: it has no {missing[0]}"
    head = ("workload", "target", *(name for name in ("device", "unit", "algorithm") if name in fields), "sketch")
    return _dumps({name: fields[name] for name in (*head, *tail, "counters", "measured_by") if name in fields}).encode()


def _read_tail(known: _Head, tail: bytes, fields: dict[str, Any]) -> Record | str:
    workload, target, sketch, algorithm, unit, device = known
    wrong = wrong_in_tail(tail, fields, unit == SECONDS)
    if wrong:
        return wrong
    failure = fields["failure"]
    return Record(
        workload, target, sketch, tuple(fields["row"]), tuple(fields["seconds"] if "seconds" in fields else fields["costs"]),
        None if failure is None else Failure(failure["kind"], failure["text"]),
        fields["cut_short"], fields["elapsed"], fields["timestamp"], fields["seed"], fields["round"], algorithm, unit, device,
        tuple(fields["counters"].items()) if "counters" in fields else (), intern(fields.get("measured_by", "")),
    )  # fmt: skip


def header_line(header: Header) -> bytes:
    """The line of a header, newline included."""
    fields = {
        "format": header.format, "package": header.package, "started": round_to(header.started),
        "machine": dict(header.machine), "compiler": header.compiler, "flags": list(header.flags), "seed": header.seed,
        **({"names": dict(header.names)} if header.names else {}),
    }  # fmt: skip
    return _dumps({"header": fields}).encode() + b"\n"


def _read_header(line: bytes, path: Path) -> Header | str:
    """The header of a line, or why it is skipped. Raises RecordError for a newer format, whose lines may mean anything."""
    try:
        fields = json.loads(line)["header"]
        found = fields["format"]
        if is_whole(found) and found > FORMAT:
            raise RecordError(
                f"{path} holds records of format {str(found)[:20]}, but this version reads formats up to {FORMAT}; "
                f"update the package, or write to another file"
            )
        if not _is_header(fields):
            return DAMAGED_HEADER
        machine = tuple((str(key), str(value)) for key, value in fields["machine"].items())
        return Header(fields["compiler"], tuple(fields["flags"]), fields["seed"], fields["package"], machine, fields["started"], found, _names(fields))
    except RecordError:  # also a ValueError
        raise
    except _UNREADABLE:
        return TORN


def _names(fields: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """A header's names of workloads. They are only displayed, so damaged ones are left out."""
    names = fields.get("names")
    return tuple((key, name[:LONGEST_NAME]) for key, name in names.items() if is_name(key) and is_name(name)) if isinstance(names, dict) else ()


def _is_header(fields: dict[str, Any]) -> bool:
    names = [fields["compiler"], fields["package"], *fields["flags"], *fields["machine"], *fields["machine"].values()]
    known = is_whole(fields["format"]) and fields["format"] >= FIRST_FORMAT
    return known and type(fields["flags"]) is list and all(map(is_name, names)) and is_whole(fields["seed"]) and is_duration(fields["started"])


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def frozen(value: Json) -> Json:
    """Lists as tuples."""
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value
