"""Builds the report from runs: which costs are comparable, each task's share of the time, and how two runs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ansor.explain.values import Roof
from ansor.report.values import CostScope, Entry, Report, Run, Section, TaskComparison, TaskFacts, TunedWorkload

SUM = "all tasks in both runs"


def make_report(run: Run, against: Run | None, known: Callable[[TunedWorkload], TaskFacts], roof: Callable[[CostScope], Roof | None], of: str = "") -> Report:
    """Build the report. known: what is known about a task besides its trials; roof: the limits of programs; of: the network or operator, "" for none."""
    sections = tuple(_sections(run, against, known, roof))
    compared = () if against is None else tuple(_compared(section, against) for section in sections)
    return Report(run, against, sections, compared, of)


def _sections(run: Run, against: Run | None, known: Callable[[TunedWorkload], TaskFacts], roof: Callable[[CostScope], Roof | None]) -> Iterator[Section]:
    first = 1
    for where in run.places:
        tasks = [task for task in run.tasks if task.where == where]
        entries = _entries([(task, known(task)) for task in tasks], against, first)
        first += len(entries)
        yield Section(where, entries, roof(where) if any(entry.known.winner for entry in entries) else None)


def _entries(tasks: Sequence[tuple[TunedWorkload, TaskFacts]], against: Run | None, first: int) -> tuple[Entry, ...]:
    """The entries, most expensive task first."""
    times = [_time(task, known.weight) for task, known in tasks]
    total = sum(time for time in times if time is not None)
    shares = [None if time is None else time / total for time in times]
    order = sorted(range(len(tasks)), key=lambda k: -(shares[k] or 0.0))
    return tuple(
        Entry(number, *tasks[k], shares[k], None if against is None else against.find(tasks[k][0].workload, tasks[k][0].where))
        for number, k in enumerate(order, first)
    )


def _time(task: TunedWorkload, weight: float | None) -> float | None:
    return None if task.best is None or weight is None else task.best * weight


def _compared(section: Section, against: Run) -> tuple[TaskComparison, ...]:
    rows = [_row(entry.task, entry.before, entry.known.weight or 1.0) for entry in section.entries]
    ours = {entry.task.workload for entry in section.entries}
    both = [(row.now, row.before) for row in rows if row.now is not None and row.before is not None]
    rows += [TaskComparison(task.name, None, task.best) for task in against.tasks if task.where == section.where and task.workload not in ours]
    if len(both) > 1:
        rows.append(TaskComparison(SUM, sum(now for now, _ in both), sum(before for _, before in both)))
    return tuple(rows)


def _row(task: TunedWorkload, before: TunedWorkload | None, weight: float) -> TaskComparison:
    return TaskComparison(task.name, _time(task, weight), None if before is None else _time(before, weight))
