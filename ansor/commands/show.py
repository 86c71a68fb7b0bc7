"""`ansor show`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ansor import api
from ansor.commands.as_json import notes_of, say_json
from ansor.commands.common import made, make_console, put_in_order, say_skipped
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import OperatorSubject, resolve
from ansor.errors import ArgumentError, RecordError
from ansor.measure.nothing_recorded import nothing_for
from ansor.measure.record import MODEL, Loaded, Record, load
from ansor.report.runs import machine_text
from ansor.run.choosing import recorded_state, say_unused
from ansor.run.kernels import schedule_text
from ansor.run.progress import say
from ansor.run.states import Best
from ansor.targets.unit import Unit
from ansor.tasks.passes import passes_of
from ansor.tasks.task import SearchTask

WIDE = 80
"""The fewest columns of a terminal at which a key stays on one line."""


def run_show(given: argparse.Namespace) -> int:
    """Summarise a record file, or show the best program of one workload in it."""
    console = make_console()
    put_in_order(given)
    if given.subject:
        _show_program(given, console)
        return 0
    if given.source or given.passes:
        option = "--source" if given.source else "--passes"
        raise ArgumentError(f"asked to show {given.records} with {option}, which is for one program; name it: ansor show {given.records} NAME {option}")
    loaded = load(given.records)
    if not loaded.headers and not loaded.records:
        raise RecordError(f"asked to show {given.records}, which holds no trials; name a file that `ansor tune` wrote")
    if given.json:
        say_json(console, _as_json(given.records, loaded))
        return 0
    for header in loaded.headers[-1:]:
        machine = machine_text(header)
        model = dict(header.machine).get(MODEL)
        by = f"; the cost model: {model}" if model else ""
        console.print(f"{given.records}: {len(loaded.records)} trials; last written by ansor {header.package} on {machine}, {header.compiler}{by}",
                      soft_wrap=True)  # fmt: skip
    for target in dict.fromkeys(record.target for record in loaded.records):
        console.print(target, soft_wrap=True)
        console.print(_summary([record for record in loaded.records if record.target == target], loaded.names, console.width >= WIDE))
    say_skipped(loaded, console)
    return 0


@dataclass(frozen=True)
class Line:
    """A summary of a workload's trials on one target. best: by the unit of the costs; failures: by kind."""

    name: str
    workload: str
    trials: int
    best: tuple[tuple[Unit, float], ...]
    failures: tuple[tuple[str, int], ...]


def _lines(records: Sequence[Record], names: Mapping[str, str]) -> list[Line]:
    """A line for each workload."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.workload, []).append(record)
    found = []
    for workload, group in groups.items():
        units = dict.fromkeys(record.unit for record in group if record.costs)
        bests = tuple((unit, min(record.cost for record in group if record.costs and record.unit == unit)) for unit in units)
        failures = Counter(record.failure.kind for record in group if record.failure is not None)
        found.append(Line(names.get(workload, ""), workload, len(group), bests, tuple(failures.most_common())))
    return found


def _as_json(file: str, loaded: Loaded) -> dict[str, object]:
    """The contents of a file. `written`: the program and machine that wrote to it last."""
    targets = []
    for target in dict.fromkeys(record.target for record in loaded.records):
        lines = _lines([record for record in loaded.records if record.target == target], loaded.names)
        workloads = [
            {"name": one.name, "workload": one.workload, "trials": one.trials, "failures": dict(one.failures),
             "best": [{"unit": unit, "cost": cost} for unit, cost in one.best]} for one in lines
        ]  # fmt: skip
        targets.append({"target": target, "workloads": workloads})
    written = [{"package": one.package, "machine": dict(one.machine), "compiler": one.compiler} for one in loaded.headers[-1:]]
    return {"file": file, "trials": len(loaded.records), "written": written[0] if written else None, "targets": targets, "left_out": loaded.skipped}


def _summary(records: Sequence[Record], names: Mapping[str, str], wide: bool) -> Table:
    """A row for each workload, with its name and its whole key, which other tools use. wide: keep a key on one line."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", overflow="fold")
    table.add_column("workload", no_wrap=wide, overflow="fold")
    for heading in ("trials", "best"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("failures", overflow="fold")
    for one in _lines(records, names):
        bests = ", ".join(unit.text(cost) for unit, cost in one.best)
        failures = ", ".join(f"{kind} {count}" for kind, count in one.failures)
        table.add_row(Text(one.name), one.workload, str(one.trials), bests or "-", failures or "none")
    return table


def _show_program(given: argparse.Namespace, console: Console) -> None:
    notes = notes_of(given, console)
    subject = resolve(given.subject, given.args)
    target = target_for(given, given.records, notes)
    if isinstance(subject, OperatorSubject):
        tasks = [subject.task(target)]
    else:
        tasks, _ = api.extract_tasks(*made(subject), target, report=notes.print, records=given.records)
    states = [recorded_state(task, given.records) for task in tasks]
    records = load(given.records).records
    found = [(state.task, state.best) for state in states if state.best is not None]
    if found and given.json:
        say_json(console, {"file": given.records, "target": str(target), "programs": [_program(task, best, records, given) for task, best in found]})
    elif not given.json:
        for task, best in found:
            _print_program(task, best, _shown(task, best, given), console)
            _print_trial(_trial(task, best, records), console)
    say_unused(states, given.records, partial(say, notes), partial(say, notes))
    if not found:
        raise nothing_for(tasks[0].name if len(tasks) == 1 else subject.name, target, given.records)


def _form(given: argparse.Namespace) -> str:
    return "passes" if given.passes else "source" if given.source else "loops"


def _shown(task: SearchTask, best: Best, given: argparse.Namespace) -> str:
    """A program in the requested form."""
    if given.passes:
        return "\n\n".join(map(str, passes_of(best.sketch, best.row, task.target)))
    return task.source(best.sketch, best.row).text if given.source else schedule_text(task, best)


def _program(task: SearchTask, best: Best, records: Sequence[Record], given: argparse.Namespace) -> dict[str, object]:
    """A program for JSON: its cost, its row, and its text in the requested form."""
    alternative, trial = task.alternative_of(best.sketch), _trial(task, best, records)
    return {"name": task.name, "workload": task.workload_key, "unit": best.unit, "cost": best.cost, "flop": task.flop, "row": best.row,
            "algorithm": "" if alternative is None else alternative.name, "counters": dict(trial.counters) if trial else {},
            "measured_by": trial.measured_by if trial else "", _form(given): _shown(task, best, given)}  # fmt: skip


def _print_program(task: SearchTask, best: Best, text: str, console: Console) -> None:
    alternative = task.alternative_of(best.sketch)
    by = f", by {alternative.name} (operations counted as declared)" if alternative is not None else f", by {best.origin}" if task.templates else ""
    console.print(f"{task.name}: {best.unit.text(best.cost)}, {best.unit.rate(task.flop, best.cost)}{by}")
    console.print(text, soft_wrap=True, markup=False)


def _trial(task: SearchTask, best: Best, records: Sequence[Record]) -> Record | None:
    """The trial of a program, if it records what the device counted, or which device measured it."""
    ours = [one for one in records if one.workload == task.workload_key and one.row == tuple(best.row)]
    return next((one for one in ours if (one.counters or one.measured_by) and one.unit == best.unit and one.cost == best.cost), None)


def _print_trial(trial: Record | None, console: Console) -> None:
    if trial and trial.counters:
        console.print("counted: " + ", ".join(f"{name} {value:,.0f}" for name, value in trial.counters), soft_wrap=True, markup=False)
    if trial and trial.measured_by:
        console.print(f"measured by {trial.measured_by}", soft_wrap=True, markup=False)
