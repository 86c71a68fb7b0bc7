"""Reads record files as a run: the parts of a report that need only record files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ansor.errors import RecordError
from ansor.measure.record import MODEL, Header, Loaded, Record, load
from ansor.report.values import CostScope, Failures, Run, TunedWorkload

WRITE = "name a record file that `ansor tune` wrote"


def read_run(files: Sequence[str | Path]) -> Run:
    """The trials of all files, in order. Raises RecordError for a file that is missing, is not a record file, or holds no trials."""
    loaded = [(str(path), _load(path)) for path in dict.fromkeys(map(str, files))]
    groups: dict[tuple[str, CostScope], list[Record]] = {}
    left_out: Counter[str] = Counter()
    names: dict[str, str] = {}
    for _, one in loaded:
        left_out.update(one.skipped)
        names |= one.names
        for record in one.records:
            groups.setdefault((record.workload, CostScope(record.target, record.device, record.unit)), []).append(record)
    tasks = tuple(_tuned(workload, names.get(workload, ""), where, records) for (workload, where), records in groups.items())
    made = tuple(dict.fromkeys(_made(header) for _, one in loaded for header in one.headers[-1:]))
    return Run(tuple(path for path, _ in loaded), tasks, made, tuple(left_out.most_common()))


def _load(path: str | Path) -> Loaded:
    if not Path(path).is_file():
        raise RecordError(f"asked to report on {path}, which is not a file; {WRITE}")
    loaded = load(path)
    if not loaded.records:
        raise RecordError(f"asked to report on {path}, which holds no trials; {WRITE}")
    return loaded


def _tuned(workload: str, name: str, where: CostScope, records: Sequence[Record]) -> TunedWorkload:
    costs = tuple(record.cost if record.costs else None for record in records)
    return TunedWorkload(workload, name or workload, where, costs, _failures(records))


def _failures(records: Iterable[Record]) -> tuple[Failures, ...]:
    """The most frequent kind first."""
    failures = [record.failure for record in records if record.failure is not None]
    counts = Counter(failure.kind for failure in failures)
    first = {failure.kind: failure.text for failure in reversed(failures)}
    return tuple(Failures(kind, count, first[kind]) for kind, count in counts.most_common())


def machine_text(header: Header) -> str:
    """The machine in a header: processor, cores, system."""
    return ", ".join(f"{value} cores" if name == "cores" else value for name, value in header.machine if name != MODEL)


def _made(header: Header) -> str:
    machine = machine_text(header)
    model = dict(header.machine).get(MODEL)
    return f"ansor {header.package} on {machine}; {header.compiler}{f'; cost model: {model}' if model else ''}"
