"""`ansor compile`."""

from __future__ import annotations

import argparse
import time

from rich.console import Console

from ansor import api
from ansor.commands.common import records_of, save_kernels, target_of
from ansor.commands.tune import print_comparison
from ansor.errors import RecordError
from ansor.subject import OperatorSubject, resolve
from ansor.targets.base import Target
from ansor.task import SearchTask
from ansor.text import format_seconds
from ansor.tuning import TaskState


def run_compile(given: argparse.Namespace) -> int:
    """Build what was named from recorded programs, without measuring."""
    console = Console(highlight=False)
    subject = resolve(given.subject, given.args)
    target = target_of(given)
    records = records_of(given, subject)
    if given.records and not records.exists():
        raise RecordError(f"asked to compile from {records}, which does not exist; tune first, or leave --records out")
    start = time.monotonic()
    if isinstance(subject, OperatorSubject):
        states = [api.recorded_state(SearchTask(subject.function, subject.args, target), records)]
        network = None
    else:
        states = []
        network = api.compile(subject.model(), subject.example_inputs(), target, records=records, report=console.print, on_tasks=states.extend)
    _say_origin(states, target, console)
    if given.output:
        console.print(f"{save_kernels(states, given.output, target, api.chosen)} kernels saved in {given.output}")
    console.print(f"compiled in {format_seconds(time.monotonic() - start)}")
    if network is not None and not given.no_compare and not isinstance(subject, OperatorSubject):
        print_comparison(network, subject, target, console)
    return 0


def _say_origin(states: list[TaskState], target: Target, console: Console) -> None:
    recorded = sum(state.best is not None for state in states)
    console.print(f"{len(states)} kernels for {target}: {recorded} from records, {len(states) - recorded} first guesses")
