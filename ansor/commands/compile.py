"""`ansor compile`."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.common import check_folder, check_records_exist, doing, made, make_console, records_of, save_kernels, say_origin
from ansor.commands.export import run_export
from ansor.commands.int8 import is_int8, run_int8
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import NetworkSubject, OperatorSubject, resolve
from ansor.commands.tune import compare_with_torch
from ansor.errors import ArgumentError, RecordError
from ansor.measure.record import check_file
from ansor.measure.record_place import make_place
from ansor.run.choosing import chosen, recorded_state, say_guesses, say_unused
from ansor.run.machine_checks import check_loads_here, check_machine, check_tools
from ansor.run.program import results
from ansor.run.progress import ProgressView, say
from ansor.run.states import TaskState
from ansor.support.text import counted, format_seconds
from ansor.targets.base import Target


def run_compile(given: argparse.Namespace) -> int:
    """Build an operator or a network from recorded programs, without measuring."""
    console = make_console()
    if given.export is not None and given.output is not None:
        raise ArgumentError(f"asked for both --output {given.output} and --export {given.export}; give one of them")
    if given.export is not None and not is_int8(given):
        return run_export(given, console)
    if given.export is not None or given.isas is not None:
        raise ArgumentError("asked for --isas without --export, or to export an int8 network; use --output for int8 networks, --export DIR for others")
    if given.constants is not None:
        raise ArgumentError("asked for --constants without --export, which writes them; add --export DIR, or leave --constants out")
    if is_int8(given):
        return run_int8(given, console, {"trials": 0, "cost_model": given.model}, reads=True)
    with doing(console, f"reading {given.subject}"):
        subject = resolve(given.subject, given.args)
    check_folder(given.output)
    records = records_of(given, subject)
    check_records_exist(given, records)
    check_file(records)
    target = target_for(given, records, console)
    if not isinstance(subject, OperatorSubject):
        check_loads_here(target)
    check_machine(target, measures=False)
    check_tools(target)
    if isinstance(subject, OperatorSubject):
        return _compile_operator(given, subject, target, records, console)
    return _compile_network(given, subject, target, records, console)


def _compile_operator(given: argparse.Namespace, subject: OperatorSubject, target: Target, records: Path, console: Console) -> int:
    start = time.monotonic()
    states = [recorded_state(subject.task(target), records)]
    say_unused(states, records, partial(say, console), partial(say, console))
    say_origin(states, target, console)
    results([state.task for state in states], [chosen(state, given.model) for state in states], target.toolchain())
    say_guesses(states, lambda line: say(console, line))
    console.print(f"compiled in {format_seconds(time.monotonic() - start)}")
    _save(given, states, target, console)
    return 0


def _compile_network(given: argparse.Namespace, subject: NetworkSubject, target: Target, records: Path, console: Console) -> int:
    with doing(console, f"making the model of {subject.name}"):
        model, inputs = made(subject)
    states: list[TaskState] = []
    start = time.monotonic()
    network = api.compile(
        model, inputs, target, trials=0, records=_kept(given, records, console), cost_model=given.model, library=not given.no_library,
        progress=ProgressView(console), on_tasks=states.extend,
    )  # fmt: skip
    say_origin(states, target, console)
    console.print(f"compiled in {format_seconds(time.monotonic() - start)}")
    _save(given, states, target, console)
    if not given.no_compare:
        compare_with_torch(subject.name, (network, model, inputs), states, target, console)
    return 0


def _kept(given: argparse.Namespace, records: Path, console: Console) -> Path | None:
    """The record file, which is made if it is missing: the choice of PyTorch's kernels is kept there, too. None where none can be made, or none is needed."""
    if not given.no_library:
        try:
            make_place(records)
        except RecordError as error:
            if given.records or records.exists():
                raise
            say(console, f"which of PyTorch's kernels are faster is not kept: {error}")
    return records if records.exists() else None


def _save(given: argparse.Namespace, states: list[TaskState], target: Target, console: Console) -> None:
    if given.output:
        console.print(f"{counted(save_kernels(states, given.output, target, chosen), 'kernel')} saved in {given.output}")
