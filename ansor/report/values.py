"""The contents of a report, as values: runs from their record files and, if the declarations are known, the best programs."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.explain.values import Roof
from ansor.support.html_text import table
from ansor.support.text import format_share
from ansor.targets.unit import Unit


@dataclass(frozen=True)
class CostScope:
    """The scope in which costs are comparable: the target as records name it, the device's model, the unit."""

    target: str
    device: str
    unit: Unit


@dataclass(frozen=True)
class Failures:
    """How many trials failed in one way, and the first one's message."""

    kind: str
    count: int
    example: str


@dataclass(frozen=True)
class TunedWorkload:
    """One workload in one run. costs: of its trials in file order, None for a failure."""

    workload: str
    name: str
    where: CostScope
    costs: tuple[float | None, ...]
    failures: tuple[Failures, ...]

    @property
    def best(self) -> float | None:
        """The least cost; None if every trial failed."""
        return min((cost for cost in self.costs if cost is not None), default=None)

    @property
    def failed(self) -> tuple[int, ...]:
        """The numbers, from 1, of failed trials."""
        return tuple(number for number, cost in enumerate(self.costs, 1) if cost is None)

    @property
    def steps(self) -> tuple[tuple[int, float], ...]:
        """The trials, from 1, that improved on all before, with their costs."""
        found: list[tuple[int, float]] = []
        for number, cost in enumerate(self.costs, 1):
            if cost is not None and (not found or cost < found[-1][1]):
                found.append((number, cost))
        return tuple(found)


@dataclass(frozen=True)
class Run:
    """One or more record files as one run. made: sentences about what wrote them; left_out: the number of lines that do not count, by reason."""

    files: tuple[str, ...]
    tasks: tuple[TunedWorkload, ...]
    made: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]

    def find(self, workload: str, where: CostScope) -> TunedWorkload | None:
        """The task of that workload with comparable costs."""
        return next((task for task in self.tasks if task.workload == workload and task.where == where), None)

    @property
    def places(self) -> tuple[CostScope, ...]:
        """The scopes, each once, in file order."""
        return tuple(dict.fromkeys(task.where for task in self.tasks))


@dataclass(frozen=True)
class Winner:
    """The best program of a task that this version can reproduce. bytes: of all arguments, each moved once; cost: of this program."""

    flop: int
    bytes: int
    cost: float
    schedule: tuple[tuple[str, tuple[str, ...]], ...]
    tiles: tuple[tuple[str, str, str], ...]
    texts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaskFacts:
    """What is known about a task besides its trials. weight: uses in the network, None if the task is not in it; reason: why there is no winner."""

    weight: float | None
    winner: Winner | None
    reason: str = ""


@dataclass(frozen=True)
class Entry:
    """A task in the report. share: of the total time; before: the same task in the run to compare with."""

    number: int
    task: TunedWorkload
    known: TaskFacts
    share: float | None
    before: TunedWorkload | None


@dataclass(frozen=True)
class Section:
    """Tasks with comparable costs, and the limits of their programs."""

    where: CostScope
    entries: tuple[Entry, ...]
    roof: Roof | None

    @property
    def total(self) -> float:
        """The sum of the best costs, times their weights."""
        return sum(entry.task.best * entry.known.weight for entry in self.entries if entry.task.best is not None and entry.known.weight is not None)


@dataclass(frozen=True)
class TaskComparison:
    """A task in two runs, or all tasks in both: best costs times weights, None if a run does not have the task, or has no valid trial of it."""

    name: str
    now: float | None
    before: float | None


@dataclass(frozen=True)
class Report:
    """The whole report. compared: for each section, in order; its last row is the sum if both runs share several tasks."""

    run: Run
    against: Run | None
    sections: tuple[Section, ...]
    compared: tuple[tuple[TaskComparison, ...], ...]
    of: str

    def _repr_html_(self) -> str:
        """The start of the page: its tables of tasks."""
        return "".join(_section_html(one) for one in self.sections)


def _section_html(section: Section) -> str:
    where = section.where
    rows = [
        (entry.task.name, "-" if entry.task.best is None else where.unit.text(entry.task.best), len(entry.task.costs),
         "" if entry.share is None else format_share(entry.share)) for entry in section.entries
    ]  # fmt: skip
    return table(f"{where.target}, {where.unit}", ("task", "best", "trials", "share"), rows)
