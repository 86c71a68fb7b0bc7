"""`ansor explain`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.as_json import notes_of, say_json
from ansor.commands.common import made, make_console, put_in_order
from ansor.commands.recorded_operator import operator_of
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import OperatorSubject, Subject, resolve
from ansor.cost_model.base import CostModel
from ansor.errors import RecordError
from ansor.explain.explanation import explain
from ansor.explain.text import WIDTH, explanation_text
from ansor.explain.values import Explanation
from ansor.measure.nothing_recorded import nothing_for
from ansor.measure.record import load
from ansor.run.progress import say
from ansor.run.scoring_model import scoring_model
from ansor.support.text import counted
from ansor.targets.base import LOCAL, Target
from ansor.tasks.recorded import RecordedTrials, recorded_outcomes, say_left_out
from ansor.tasks.task import SearchTask

NARROWEST, WIDEST = 80, 160
"""The fewest and the most columns of the text on a terminal."""


def run_explain(given: argparse.Namespace) -> int:
    """Explain why the best recorded program of a workload is fast, and why others are slower."""
    console = make_console()
    notes = notes_of(given, console)
    put_in_order(given)
    if not Path(given.records).is_file():
        raise RecordError(f"asked to explain {given.records}, which is not a file; name a record file that `ansor tune` wrote")
    target = target_for(given, given.records, notes)
    if given.subject:
        subject = resolve(given.subject, given.args)
        tasks, name = list(_tasks(subject, target, given.records)), subject.name
    else:
        tasks, name = [_builtin(given.records, target)], "it"
    known = [(task, weight, recorded_outcomes(task, given.records)) for task, weight in tasks]
    explained = [(task, weight, recorded) for task, weight, recorded in known if any(outcome.valid for outcome, _ in recorded.known)]
    if not explained:
        _say_left_out([recorded for _, _, recorded in known], given.records, notes)
        raise nothing_for(tasks[0][0].name if len(tasks) == 1 else name, target, given.records)
    explained.sort(key=lambda entry: -entry[1] * _best_seconds(entry[2]))
    shown = explained if given.all else explained[:1]
    if given.json:
        found = [{"workload": task.workload_key, "uses": weight, **_explained(given, task, recorded)} for task, weight, recorded in shown]
        say_json(console, {"file": given.records, "target": str(target), "explained": found, "others": len(explained) - len(shown)})
    else:
        _print(given, console, [(task, recorded) for task, _, recorded in shown])
    _say_left_out([recorded for _, _, recorded in shown], given.records, notes)
    if len(explained) > len(shown) and not given.json:
        rest = counted(len(explained) - len(shown), "other workload")
        console.print(f"\n{name} spends most of its time in this one; --all explains the {rest} too", soft_wrap=True, markup=False)
    return 0


def _explanation(given: argparse.Namespace, task: SearchTask, recorded: RecordedTrials) -> Explanation:
    here = all(record.device == LOCAL for _, record in recorded.known)
    outcomes = [outcome for outcome, _ in recorded.known]
    model = partial(_model, task.target, recorded.unit.name, here)
    return explain(task, outcomes, peak_gflops=given.peak, bandwidth_gbytes=given.bandwidth, model=model, unit=recorded.unit)


def _explained(given: argparse.Namespace, task: SearchTask, recorded: RecordedTrials) -> dict[str, object]:
    """The fields of the explanation, by name."""
    found = _explanation(given, task, recorded)
    return {one.name: getattr(found, one.name) for one in fields(found)}


def _print(given: argparse.Namespace, console: Console, shown: Sequence[tuple[SearchTask, RecordedTrials]]) -> None:
    width = max(NARROWEST, min(WIDEST, console.width)) if console.is_terminal else WIDTH
    for k, (task, recorded) in enumerate(shown):
        text = explanation_text(_explanation(given, task, recorded), width)
        console.print(("\n\n" if k else "") + text, soft_wrap=True, markup=False)


def _model(target: Target, unit: str, here: bool) -> CostModel:
    """The model that a search for such programs starts with."""
    return scoring_model(target, unit, here=here).model


def _tasks(subject: Subject, target: Target, records: str) -> Iterator[tuple[SearchTask, int]]:
    """The workloads of a subject, and how often each is used."""
    if isinstance(subject, OperatorSubject):
        yield subject.task(target), 1
        return
    yield from zip(*api.extract_tasks(*made(subject), target, records=records), strict=True)  # shows warnings, as other commands do


def _builtin(records: str, target: Target) -> tuple[SearchTask, int]:
    """The only workload of a file, if it is a built-in operator with the sizes in its recorded name or with its default sizes. Raises RecordError otherwise."""
    loaded = load(records)
    found = dict.fromkeys(record.workload for record in loaded.records)
    if not found:
        raise RecordError(f"asked to explain {records}, which holds no trials; name a file that `ansor tune` wrote")
    names = [loaded.names.get(key, "") for key in found]
    if len(found) > 1:
        listed = ", ".join(filter(None, names[:8]))
        raise RecordError(
            f"asked to explain {records}, which holds trials of {len(found)} workloads{f' ({listed})' if listed else ''}; "
            "name one: NAME, or FILE.py[:function], and --args"
        )
    known = operator_of(names[0], tuple(found))
    if known is not None:
        return SearchTask(known[0].function, known[1], target), 1
    raise RecordError(
        f"asked to explain {records}, whose workload{f' {names[0]}' if names[0] else ''} is not a built-in operator with its default sizes; "
        "name it: NAME, or FILE.py[:function], and --args"
    )


def _best_seconds(recorded: RecordedTrials) -> float:
    return min(outcome.cost for outcome, _ in recorded.known if outcome.valid and outcome.cost is not None)


def _say_left_out(recorded: list[RecordedTrials], records: str, console: Console) -> None:
    say_left_out([one.left_out for one in recorded], records, partial(say, console), partial(say, console))
