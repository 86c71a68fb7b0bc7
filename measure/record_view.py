"""Views of record files: a data frame, and a table in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.support.html_text import table
from ansor.targets.unit import Unit

if TYPE_CHECKING:
    import pandas


class _Record(Protocol):
    """The displayed part of a trial."""

    @property
    def workload(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def row(self) -> tuple[int, ...]: ...
    @property
    def costs(self) -> tuple[float, ...]: ...
    @property
    def cost(self) -> float: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def cut_short(self) -> bool: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def timestamp(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def unit(self) -> Unit: ...
    @property
    def device(self) -> str: ...
    @property
    def counters(self) -> tuple[tuple[str, float], ...]: ...
    @property
    def measured_by(self) -> str: ...


class RecordView:
    """The views of a loaded record file."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def records(self) -> Sequence[_Record]: ...
        @property
        def names(self) -> Mapping[str, str]: ...

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with one row per trial, in the order of the file.

        `cost` is the median of a trial's repeats in its `unit`, NaN for a failure; `failure` is the kind, empty for a valid trial. Anything else a device
        counted has its own column, `counter NAME`. Raises RecordError if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise RecordError("asked for a data frame, which needs pandas; install it: pip install 'ansor[pandas]'") from error
        return pandas.DataFrame(_columns(self.records, self.names)).astype({"timestamp": "datetime64[ns, UTC]"})

    def _repr_html_(self) -> str:
        groups: dict[tuple[str, Unit], list[_Record]] = {}
        for one in self.records:
            groups.setdefault((one.workload, one.unit), []).append(one)
        rows = [_row(self.names.get(workload, workload[:8]), unit, group) for (workload, unit), group in groups.items()]
        return table(repr(self), ("workload", "trials", "best", "failures"), rows)


def _columns(records: Sequence[_Record], names: Mapping[str, str]) -> dict[str, list[object]]:
    counters = [dict(one.counters) for one in records]
    found: dict[str, list[object]] = {
        "name": [names.get(one.workload, "") for one in records],
        "workload": [one.workload for one in records],
        "target": [one.target for one in records],
        "device": [one.device for one in records],
        "measured_by": [one.measured_by for one in records],
        "algorithm": [one.algorithm for one in records],
        "unit": [one.unit.to_text() for one in records],
        "cost": [one.cost if one.costs else float("nan") for one in records],
        "repeats": [len(one.costs) for one in records],
        "failure": ["" if one.failure is None else one.failure.kind for one in records],
        "cut_short": [one.cut_short for one in records],
        "row": [one.row for one in records],
        "round": [one.round for one in records],
        "seed": [one.seed for one in records],
        "elapsed": [one.elapsed for one in records],
        "timestamp": [int(one.timestamp * 1e9) for one in records],
    }
    for name in dict.fromkeys(name for one in counters for name in one):
        found[f"counter {name}"] = [one.get(name, float("nan")) for one in counters]
    return found


def _row(name: str, unit: Unit, group: Sequence[_Record]) -> tuple[object, ...]:
    valid = [one.cost for one in group if one.costs]
    failures = Counter(one.failure.kind for one in group if one.failure is not None)
    words = ", ".join(f"{kind} {count}" for kind, count in failures.most_common())
    return name, len(group), unit.text(min(valid)) if valid else "-", words or "none"
