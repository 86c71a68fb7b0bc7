"""`ansor report`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansor import __version__, api
from ansor.commands.common import made, make_console, target_of
from ansor.commands.recorded_operator import operator_of
from ansor.commands.subject import OperatorSubject, Subject, resolve
from ansor.errors import AnsorError, ArgumentError, RecordError
from ansor.explain.values import Roof
from ansor.measure.record_target import is_of, options_text
from ansor.report.page import page
from ansor.report.runs import read_run
from ansor.report.sections import make_report
from ansor.report.values import CostScope, Run, TaskFacts, TunedWorkload
from ansor.report.winners import winner_of
from ansor.run.machine_peak import machine_peak
from ansor.run.reporter import Report as Say
from ansor.support.safe_files import write_whole
from ansor.support.text import counted
from ansor.targets.base import LOCAL, Target
from ansor.targets.program_options import read_target, why_refused
from ansor.targets.unit import SECONDS
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs

UNNAMED = "The declaration of this task is unknown; name it with --of to see its best program."


def run_report(given: argparse.Namespace, wait: Callable[[float], None] = time.sleep) -> int:
    """Write the report once, or repeatedly until Ctrl-C. `wait`: sleeps in between."""
    console = make_console()
    _check(given)
    programs = _Programs(given, console.print)
    if not given.refresh:
        run = _write(given, programs, 0)
        left_out = sum(count for _, count in run.left_out)
        said = f"; {counted(left_out, 'line')} of the records left out: the page says why" if left_out else ""
        console.print(f"{given.output}: {counted(len(run.tasks), 'task')}{said}", soft_wrap=True, markup=False)
        return 0
    _write(given, programs, given.refresh)
    console.print(f"{given.output}: written every {counted(given.refresh, 'second')}; Ctrl-C ends it", soft_wrap=True, markup=False)
    try:
        while True:
            wait(given.refresh)
            _write(given, programs, given.refresh)
    except KeyboardInterrupt:
        _write(given, programs, 0)
    return 0


def _check(given: argparse.Namespace) -> None:
    if (given.peak is None) != (given.bandwidth is None):
        one, other = ("--peak", "--bandwidth") if given.bandwidth is None else ("--bandwidth", "--peak")
        raise ArgumentError(f"asked for a roofline with {one} but without {other}; pass both or neither")
    if given.args and not given.of:
        raise ArgumentError("asked for a report with --args, the sizes of an operator, without an operator; name it with --of")
    output = Path(os.path.realpath(given.output))  # Path.resolve raises RuntimeError for a loop of links
    read = [*given.records, *([given.against] if given.against else [])]
    if any(os.path.realpath(path) == str(output) for path in read):
        raise ArgumentError(f"asked to write the report over {given.output}, which is a record file; name another file with -o")
    if output.is_dir() or not output.parent.is_dir():
        what = "is a folder" if output.is_dir() else "is in a folder that does not exist"
        raise ArgumentError(f"asked to write the report to {given.output}, which {what}; name a file with -o")


def _write(given: argparse.Namespace, programs: _Programs, refresh: int) -> Run:
    """Write the page, and return the run that it shows."""
    run = read_run(given.records)
    against = read_run([given.against]) if given.against else None
    report = make_report(run, against, lambda task: programs.known(task, run), programs.roof, programs.name)
    if given.of and all(entry.known.weight is None for section in report.sections for entry in section.entries):
        raise RecordError(f"asked to report on {given.of}, but {', '.join(run.files)} has no trials of it; leave --of out to see all tasks")
    write_whole(Path(given.output), page(report, __version__, refresh).encode())
    return run


class _Programs:
    """What is known about tasks besides their trials: from the subject that the command names, else from the built-in operators."""

    def __init__(self, given: argparse.Namespace, say: Say) -> None:
        self._given, self._say = given, say
        self._tasks: dict[Target, dict[str, tuple[SearchTask, float]]] = {}
        self._operators: dict[tuple[str, Target], SearchTask | None] = {}
        self._subject: Subject | None = resolve(given.of, given.args) if given.of else None
        self.name = "" if self._subject is None else self._subject.title

    def known(self, task: TunedWorkload, run: Run) -> TaskFacts:
        """A task's weight and its best program, or why there is none."""
        try:
            target = self._target(task.where)
            if isinstance(target, str):
                return TaskFacts(1.0, None, target)
            found, weight = self._found(task, target)
            if found is None:
                reason = UNNAMED if self._subject is None else f"It is not part of {self.name}."
                return TaskFacts(weight, None, reason)
            winner = winner_of(found, run.files, task.where, self.roof(task.where))
        except AnsorError as error:
            return TaskFacts(1.0, None, f"Its best program is not shown: {error}.")
        return TaskFacts(weight, None, winner) if isinstance(winner, str) else TaskFacts(weight, winner)

    def roof(self, where: CostScope) -> Roof | None:
        """The roofline. None if costs are not times, and for another machine, whose limits are known only from the options."""
        if where.unit != SECONDS:
            return None
        if self._given.peak is not None:
            return Roof(self._given.peak, self._given.bandwidth)
        target = self._target(where)
        if isinstance(target, str) or where.device != LOCAL or not is_of(where.target, target):
            return None
        peak = machine_peak(target)
        return None if peak is None else Roof(peak.gflops, peak.gbytes)

    def _target(self, where: CostScope) -> Target | str:
        """The target of the options, else that of the records; a sentence if a file may not name it."""
        given = self._given
        if given.target is not None or given.threads is not None or given.cc:
            return target_of(given)
        text = options_text(where.target)
        if why_refused(text):
            return "Its target names a compiler, and compilers named in files are not started; pass --target and --cc to see the best program."
        try:
            return read_target(text)
        except AnsorError as error:
            return f"Its target is not known here: {error}."

    def _found(self, task: TunedWorkload, target: Target) -> tuple[SearchTask | None, float | None]:
        """The task and its number of uses, which is 1 if no network is named."""
        if self._subject is None:
            place = task.workload, target
            if place not in self._operators:
                known = operator_of(task.name, (task.workload,))
                self._operators[place] = None if known is None else SearchTask(known[0].function, known[1], target)
            return self._operators[place], 1.0
        if target not in self._tasks:
            self._tasks[target] = self._declared(target)
        return self._tasks[target].get(task.workload, (None, None))

    def _declared(self, target: Target) -> dict[str, tuple[SearchTask, float]]:
        """Workload key -> the task, and its uses; groups with the same computation are one task."""
        subject, found = self._subject, dict[str, tuple[SearchTask, float]]()
        if isinstance(subject, OperatorSubject):
            pairs: list[tuple[SearchTask, float]] = [(subject.task(target), 1.0)]
        else:
            tasks, weights = api.extract_tasks(*self._made, target, report=self._say, records=self._given.records)
            pairs = list(zip(tasks, weights, strict=True))
        for task, weight in pairs:
            for key in task.workload_keys:
                found[key] = (task, weight + found.get(key, (task, 0.0))[1])
        return found

    @cached_property
    def _made(self) -> tuple[object, ExampleInputs]:
        assert self._subject is not None and not isinstance(self._subject, OperatorSubject)
        return made(self._subject)
