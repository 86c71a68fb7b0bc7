"""The contents of a report, as values: runs, from their record files, and the best programs if the declaration is known."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.support.html_text import table
from ansor.support.text import format_share
from ansor.targets.unit import Unit


@dataclass(frozen=True)
class Where:
    """What costs compare in: the target as records name it, the model of the device, the unit."""

    target: str
    device: str
    unit: Unit


@dataclass(frozen=True)
class Failures:
    """How many trials failed in one way, and what the first of them said."""

    kind: str
    count: int
    example: str


@dataclass(frozen=True)
class Tuned:
    """One workload in one run. costs: of its trials in the order of the file, None for one that failed."""

    workload: str
    name: str
    where: Where
    costs: tuple[float | None, ...]
    failures: tuple[Failures, ...]

    @property
    def best(self) -> float | None:
        """The least cost; None when every trial failed."""
        return min((cost for cost in self.costs if cost is not None), default=None)

    @property
    def failed(self) -> tuple[int, ...]:
        """The numbers, from 1, of the trials that failed."""
        return tuple(number for number, cost in enumerate(self.costs, 1) if cost is None)

    @property
    def steps(self) -> tuple[tuple[int, float], ...]:
        """The trials, from 1, that were better than all before, with their costs."""
        found: list[tuple[int, float]] = []
        for number, cost in enumerate(self.costs, 1):
            if cost is not None and (not found or cost < found[-1][1]):
                found.append((number, cost))
        return tuple(found)


@dataclass(frozen=True)
class Run:
    """One or more record files as one run. made: sentences about who wrote them; left_out: lines that are no trials, by reason."""

    files: tuple[str, ...]
    tasks: tuple[Tuned, ...]
    made: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]

    def find(self, workload: str, where: Where) -> Tuned | None:
        """The task of that workload whose costs compare."""
        return next((task for task in self.tasks if task.workload == workload and task.where == where), None)

    @property
    def places(self) -> tuple[Where, ...]:
        """Each once, in the order of the files."""
        return tuple(dict.fromkeys(task.where for task in self.tasks))


@dataclass(frozen=True)
class Winner:
    """The best program of a task that this version can make again. bytes: of all arguments, each moved once; cost: of this program."""

    flop: int
    bytes: int
    cost: float
    schedule: tuple[tuple[str, tuple[str, ...]], ...]
    tiles: tuple[tuple[str, str, str], ...]
    texts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Roof:
    """What bounds the programs of a target: 10^9 operations a second, and 10^9 bytes a second from memory."""

    gflops: float
    gbytes: float


@dataclass(frozen=True)
class Known:
    """What is known of a task besides its trials. weight: uses in the network, None for a task that is not in it; reason: why there is no winner."""

    weight: float | None
    winner: Winner | None
    reason: str = ""


@dataclass(frozen=True)
class Entry:
    """A task in the report. share: of the time of all; before: the same task in the run that is compared with."""

    number: int
    task: Tuned
    known: Known
    share: float | None
    before: Tuned | None


@dataclass(frozen=True)
class Section:
    """The tasks whose costs compare, and what bounds their programs."""

    where: Where
    entries: tuple[Entry, ...]
    roof: Roof | None

    @property
    def total(self) -> float:
        """The sum of the best costs, each as often as its weight."""
        return sum(entry.task.best * entry.known.weight for entry in self.entries if entry.task.best is not None and entry.known.weight is not None)


@dataclass(frozen=True)
class Compared:
    """A task in two runs, or all that are in both: best costs, each times its weight, None where it is not in that run or nothing was valid."""

    name: str
    now: float | None
    before: float | None


@dataclass(frozen=True)
class Report:
    """All of it. compared: of each section, in order; its last row is the sum where more than one task is in both runs."""

    run: Run
    against: Run | None
    sections: tuple[Section, ...]
    compared: tuple[tuple[Compared, ...], ...]
    of: str

    def _repr_html_(self) -> str:
        """What the page begins with: its tables of tasks."""
        return "".join(_section_html(one) for one in self.sections)


def _section_html(section: Section) -> str:
    where = section.where
    rows = [
        (entry.task.name, "-" if entry.task.best is None else where.unit.text(entry.task.best), len(entry.task.costs),
         "" if entry.share is None else format_share(entry.share)) for entry in section.entries
    ]  # fmt: skip
    return table(f"{where.target}, {where.unit}", ("task", "best", "trials", "share"), rows)
