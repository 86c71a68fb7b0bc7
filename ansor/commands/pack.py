"""`ansor pack`: the best programs of a network for a processor as one file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ansor import api
from ansor.commands.as_json import notes_of, say_json
from ansor.commands.common import doing, made, make_console
from ansor.commands.recorded_operator import operator_of
from ansor.commands.recorded_target import target_among
from ansor.commands.subject import OperatorSubject, resolve
from ansor.errors import ArgumentError, RecordError
from ansor.measure.nothing_recorded import target_texts
from ansor.measure.pack import Pack, load_pack
from ansor.measure.record import load
from ansor.run.packs import Imported
from ansor.support.text import counted, format_share, ratio_text
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask
from ansor.zoo.catalogue import NETWORKS

Pairs = list[tuple[SearchTask, float]]

WITHOUT_OF = "without --of each task counts once, not as often as the network uses it, and `ansor pack import` will need --of"


def run_pack(given: argparse.Namespace) -> int:
    """Create, show or import a pack."""
    return {"create": _create, "show": _show, "import": _import}[given.action](given)


def _create(given: argparse.Namespace) -> int:
    console = make_console()
    if Path(given.output).resolve() in [Path(file).resolve() for file in given.records]:
        raise ArgumentError(f"asked to write the pack over {given.output}, which is a record file; name another file with -o")
    texts = target_texts(record for file in given.records for record in load(file).records)
    target = target_among(given, texts, ", ".join(given.records), console)
    if given.of:
        pairs, of = _subject_tasks(given, target, console, given.records)
        pack = api.create_pack(given.records, [task for task, _ in pairs], [uses for _, uses in pairs], best=given.best, of=of)
    else:
        named = given.target is not None or given.threads is not None or given.cc or len(texts) == 1
        pack = api.create_pack(given.records, target=target if named else None, best=given.best)
    pack.save(given.output)
    console.print(f"{given.output}: {_holds(pack)}", soft_wrap=True, markup=False)
    if not given.of and any(operator_of(one.name, (one.workload,)) is None for one in pack.tasks):
        console.print(WITHOUT_OF, soft_wrap=True, markup=False)
    return 0


def _subject_tasks(given: argparse.Namespace, target: Target, console: Console, records: Sequence[str] = ()) -> tuple[Pairs, str]:
    """The tasks of the subject that --of names, with their uses; also its name if it is built-in, as only such names mean the same elsewhere, else ''.

    records: files that say how a network was divided."""
    subject = resolve(given.of, given.args)
    builtin = subject.title if not subject.file and not given.of.endswith((".py", ".onnx")) else ""
    if isinstance(subject, OperatorSubject):
        return [(subject.task(target), 1.0)], builtin
    with doing(console, f"reading {given.of}"):
        tasks, weights = api.extract_tasks(*made(subject), target, records=records)
    return [(task, float(weight)) for task, weight in zip(tasks, weights, strict=True)], builtin


def _holds(pack: Pack) -> str:
    return f"{counted(len(pack.records), 'program')} of {counted(len(pack.tasks), 'task')}{f' of {pack.of}' if pack.of else ''} for {pack.target}"


def _show(given: argparse.Namespace) -> int:
    console = make_console()
    pack = load_pack(given.pack)
    best = {one.workload: pack.programs([one.workload]) for one in pack.tasks}
    if given.json:
        tasks = [{"name": one.name, "workload": one.workload, "uses": one.uses, "unit": best[one.workload][0].unit,
                  "costs": [record.cost for record in best[one.workload]]} for one in pack.tasks]  # fmt: skip
        say_json(console, {"file": given.pack, "of": pack.of, "package": pack.package, "target": pack.target, "machine": dict(pack.machine), "tasks": tasks})
        return 0
    console.print(f"{given.pack}: {_holds(pack)}, by ansor {pack.package}", soft_wrap=True, markup=False)
    for name, fact in pack.machine:
        console.print(f"  {name}: {fact}", soft_wrap=True, markup=False)
    table = _table("uses", "programs", "best")
    for one in pack.tasks:
        first = best[one.workload][0]
        table.add_row(Text(one.name or one.workload[:8]), f"{one.uses:g}", str(len(best[one.workload])), first.unit.text(first.cost))
    console.print(table)
    return 0


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("task", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _import(given: argparse.Namespace) -> int:
    console = make_console()
    notes = notes_of(given, console)
    if given.measure and not given.records:
        raise ArgumentError(f"asked to measure {counted(given.measure, 'program')} of each task without keeping the results; name a record file with -o")
    pack = load_pack(given.pack)
    target = target_among(given, target_texts(pack.records[:1]), given.pack, notes)
    pairs = _tasks(given, pack, target, notes)
    with doing(notes, "measuring" if given.measure else "scoring the programs"):
        found = api.import_pack(pack, [task for task, _ in pairs], [uses for _, uses in pairs], measure=given.measure, records=given.records)
    if given.json:
        say_json(console, _as_json(given.pack, found))
    else:
        _print(given, found, console)
    return 0


def _tasks(given: argparse.Namespace, pack: Pack, target: Target, console: Console) -> Pairs:
    """The tasks of the subject that --of names, else of the built-in names in the pack. A pack is data: files that it names are not run."""
    if not given.of and pack.of in NETWORKS:
        given.of = pack.of
    if given.of:
        return _subject_tasks(given, target, console)[0]
    known = [(operator_of(one.name, (one.workload,)), one.uses) for one in pack.tasks]
    found = [(SearchTask(operator[0].function, operator[1], target), uses) for operator, uses in known if operator is not None]
    if not found:
        raise RecordError(f"asked to import {given.pack}, which has no task of a built-in operator; name the network or file that it was made for with --of")
    return found


def _as_json(file: str, found: Imported) -> dict[str, object]:
    tasks = [
        {"name": one.task.name, "workload": one.task.workload_key, "uses": one.uses, "programs": one.programs, "usable": len(one.usable),
         "left_out": one.left_out, "cost": one.cost, "share": one.share, "here": one.here} for one in found.tasks
    ]  # fmt: skip
    return {"file": file, "target": str(found.target), "measured_elsewhere": found.away, "model": found.model, "share": found.share, "tasks": tasks,
            "others": found.others, "missing": found.missing, "unit": found.pack.records[0].unit, "written": found.written}  # fmt: skip


def _print(given: argparse.Namespace, found: Imported, console: Console) -> None:
    unit = found.pack.records[0].unit
    where = found.away or "measured on a processor like this one: its times count here"
    console.print(f"{given.pack}: {_holds(found.pack)}; {where}", soft_wrap=True, markup=False)
    table = _table("uses", "usable", "there", "guess for here", *(["here", "against there"] if given.measure else []))
    for one in found.tasks:
        cells = ["-" if one.cost is None else unit.text(one.cost), "-" if one.share is None else _loss(one.share)]
        here = [cost for cost in one.here if cost is not None]
        cells += [unit.text(min(here)) if here else "failed" if one.here else "-"] if given.measure else []
        cells += [ratio_text(min(here), one.cost) if here and one.cost else "-"] if given.measure else []
        table.add_row(Text(one.task.name), f"{one.uses:g}", f"{len(one.usable)} of {one.programs}", *cells)
    console.print(table)
    _conclude(given, found, console)


def _loss(share: float) -> str:
    """The loss of speed compared with the model's own pick."""
    return f"loses {format_share(1 - share)}" if share < 0.9995 else "no loss"


def _conclude(given: argparse.Namespace, found: Imported, console: Console) -> None:
    """Print what cannot be used, the total, and what was written."""
    lines = [f"not usable: {counted(count, 'program')} of {one.task.name} ({reason})" for one in found.tasks for reason, count in one.left_out.items()]
    lines += _named("ignored, of other tasks", found.others) + _named("not in the pack", found.missing)
    if found.share is not None:
        lines.append(f"guess for here in total, by {found.model}: {_loss(found.share)}, compared with what it would pick here for these tasks")
    if given.records:
        lines.append(f"{given.records}: {counted(found.written, 'trial')} added")
    elif found.away and any(one.usable for one in found.tasks):
        lines.append("its times do not count here; --measure N -o RECORDS measures its best programs again")
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def _named(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what}: {', '.join(names)}"] if names else []
