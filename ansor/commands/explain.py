"""`ansor explain`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.common import made, make_console, target_of
from ansor.cost_model.pretrained import pretrained
from ansor.errors import RecordError
from ansor.explain import explain
from ansor.explain_text import WIDTH, explanation_text
from ansor.ir.dag import Dag
from ansor.measure.record import load
from ansor.subject import OperatorSubject, Subject, resolve
from ansor.targets.base import Target
from ansor.task import SearchTask
from ansor.text import counted
from ansor.tuning import Recorded, recorded_outcomes
from ansor.zoo.catalogue import OPERATORS

NARROWEST, WIDEST = 80, 160
"""Columns of a terminal that are used."""


def run_explain(given: argparse.Namespace) -> int:
    """Say why the best recorded program of a workload is fast, and what lost to it."""
    console = make_console()
    target = target_of(given)
    if not Path(given.records).is_file():
        raise RecordError(f"asked to explain {given.records}, which is not a file; name a record file that `ansor tune` wrote")
    if given.subject:
        subject = resolve(given.subject, given.args)
        tasks, name = list(_tasks(subject, target, console)), subject.name
    else:
        tasks, name = [_builtin(given.records, target)], "it"
    known = [(task, weight, recorded_outcomes(task, given.records)) for task, weight in tasks]
    explained = [(task, weight, recorded) for task, weight, recorded in known if any(outcome.valid for outcome, _ in recorded.known)]
    if not explained:
        _say_left_out([recorded for _, _, recorded in known], console)
        raise RecordError(f"{given.records} has no valid record of {name} for target {target}; `ansor show {given.records}` lists what it holds")
    explained.sort(key=lambda entry: -entry[1] * _best_seconds(entry[2]))
    shown = explained if given.all else explained[:1]
    width = max(NARROWEST, min(WIDEST, console.width)) if console.is_terminal else WIDTH
    for k, (task, _, recorded) in enumerate(shown):
        one = explain(task, [outcome for outcome, _ in recorded.known], peak_gflops=given.peak, model=pretrained)
        console.print(("\n\n" if k else "") + explanation_text(one, width), soft_wrap=True, markup=False)
        _say_left_out([recorded], console)
    if len(explained) > len(shown):
        rest = counted(len(explained) - len(shown), "other workload")
        console.print(f"\n{name} spends most of its time in this one; --all explains the {rest} too", soft_wrap=True, markup=False)
    return 0


def _tasks(subject: Subject, target: Target, console: Console) -> Iterator[tuple[SearchTask, int]]:
    """The workloads of a subject, and how often each is used."""
    if isinstance(subject, OperatorSubject):
        yield SearchTask(subject.function, subject.args, target), 1
        return
    yield from zip(*api.extract_tasks(*made(subject), target, report=console.print), strict=True)


def _builtin(records: str, target: Target) -> tuple[SearchTask, int]:
    """The workload of a file that holds one, where that is a built-in operator of its default sizes."""
    found = dict.fromkeys(record.workload for record in load(records).records)
    if not found:
        raise RecordError(f"asked to explain {records}, which holds no trials; name a file that `ansor tune` wrote")
    if len(found) > 1:
        raise RecordError(f"asked to explain {records}, which holds trials of {len(found)} workloads; name one: NAME, or FILE.py[:function], and --args")
    for operator in OPERATORS.values():
        if Dag(operator.function(*operator.args)).key in found:
            return SearchTask(operator.function, operator.args, target), 1
    raise RecordError(
        f"asked to explain {records}, whose workload is no built-in operator of its default sizes; name it: NAME, or FILE.py[:function], and --args"
    )


def _best_seconds(recorded: Recorded) -> float:
    return min(outcome.seconds for outcome, _ in recorded.known if outcome.valid and outcome.seconds is not None)


def _say_left_out(recorded: list[Recorded], console: Console) -> None:
    for one in recorded:
        for reason, count in one.left_out.items():
            console.print(f"left out: {counted(count, 'trial')} ({reason})", soft_wrap=True, markup=False)
