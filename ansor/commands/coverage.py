"""`ansor coverage`: how much of a network a record file covers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ansor.commands.as_json import notes_of, say_json
from ansor.commands.common import doing, made, make_console, put_in_order
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import OperatorSubject, Subject, resolve
from ansor.errors import RecordError
from ansor.measure.record import load
from ansor.run.coverage import PICKED, PLAIN, SHAPE, TUNED, Coverage, UnusedRecords, coverage
from ansor.run.progress import say
from ansor.support.text import counted
from ansor.targets.base import Target, parse_target
from ansor.tasks.recorded import damaged_lines, say_left_out
from ansor.tasks.task import SearchTask


def run_coverage(given: argparse.Namespace) -> int:
    """Print for each task of a network whether its program is from the records, and its share of the time."""
    console = make_console()
    notes = notes_of(given, console)
    put_in_order(given)
    if not load(given.records).records:
        raise RecordError(f"asked for the coverage of {given.records}, which holds no trials; name a file that `ansor tune` wrote")
    target = target_for(given, given.records, notes)
    with doing(notes, f"reading {given.subject}"):
        subject = resolve(given.subject, given.args)
        tasks, torch_steps = _tasks(subject, target, given.records)
    with doing(notes, "choosing programs for the untuned tasks"):
        found = coverage(tasks, given.records)
    if given.json:
        shares = {name: found.share(name) for name in (TUNED, PICKED, PLAIN)}
        about = {"subject": subject.name, "file": given.records, "target": str(found.target), "unit": found.unit, "torch_steps": torch_steps}
        say_json(console, {**about, "shares": shares, "tasks": found.tasks})
    else:
        _print(found, torch_steps, console)
        _conclude(given, found, console)
    if damaged_lines(given.records):
        say_left_out([], given.records, partial(say, notes), partial(say, notes))
    return 0


def _tasks(subject: Subject, target: Target, records: str) -> tuple[list[tuple[SearchTask, float]], int]:
    """All tasks and their uses, including those without a reduction, which `ansor.extract_tasks` leaves out; and the number of steps in PyTorch."""
    if isinstance(subject, OperatorSubject):
        return [(subject.task(target), 1.0)], 0
    from ansor.graph.tasks import extract
    from ansor.networks.row_choice import as_recorded

    extracted = as_recorded(extract(*made(subject)), target, [records])
    tasks = [(SearchTask(tensors=one.tensors, target=target, name=one.name), float(one.weight)) for one in extracted.tasks]
    return tasks, sum(one.task is None for one in extracted.placed)


def _print(found: Coverage, torch_steps: int, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("task", overflow="fold")
    for heading in ("uses", "share", "program", "trials", "cost"):
        table.add_column(heading, justify="left" if heading == "program" else "right", no_wrap=True)
    for one in found.tasks:
        cost = "-" if one.cost is None else found.unit.text(one.cost)
        table.add_row(Text(one.name), f"{one.uses:g}", f"{100 * one.share:.1f} %", one.program, str(one.trials), cost)
    console.print(table)
    if torch_steps:
        console.print(f"runs in PyTorch: {counted(torch_steps, 'step')}, not counted", soft_wrap=True, markup=False)
    for one in found.tasks:
        if one.near:
            console.print(f"near {one.name}: {_near(one.near)}", soft_wrap=True, markup=False)


def _near(near: Sequence[UnusedRecords]) -> str:
    """All records of the task itself, and those of the first other shape. JSON has the other shapes, too."""
    own = [one for one in near if one.why != SHAPE]
    shapes = [one for one in near if one.why == SHAPE]
    more = f", and {counted(len(shapes) - 1, 'other shape')}" if len(shapes) > 1 else ""
    return "; ".join(f"{counted(one.trials, 'trial')} of {one.name} ({one.why})" for one in (*own, *shapes[:1])) + more


def _conclude(given: argparse.Namespace, found: Coverage, console: Console) -> None:
    """The shares, and how to cover more."""
    kinds = [program for program in (TUNED, PICKED, PLAIN) if found.count(program)]
    parts = [f"{program} {counted(found.count(program), 'task')}, {100 * found.share(program):.1f} % of the estimated time" for program in kinds]
    console.print("; ".join(parts), soft_wrap=True, markup=False)
    if found.count(PICKED):
        args = ["--args", ",".join(map(str, given.args))] if given.args else []
        target = [] if found.target == parse_target("cpu") else ["--target", str(found.target)]
        command = shlex.join(["ansor", "tune", given.subject, *args, *target, "--records", given.records])
        console.print(f"`{command}` tunes the tasks with picked programs", soft_wrap=True, markup=False)
