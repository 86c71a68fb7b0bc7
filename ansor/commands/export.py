"""`ansor compile NAME --export DIR`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ansor import api
from ansor.commands.common import check_folder, check_records_exist, doing, made, records_of, say_origin
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import NetworkSubject, OperatorSubject, resolve
from ansor.errors import ArgumentError
from ansor.measure.kernel import Kernel
from ansor.measure.record import check_file
from ansor.networks.instruction_sets import DEFAULT, FALLBACK, NATIVE, instruction_sets
from ansor.run.choosing import chosen, recorded_state, say_unused
from ansor.run.machine_checks import check_loads_here, check_machine, check_tools
from ansor.run.program import results
from ansor.run.progress import ProgressView, say
from ansor.run.states import TaskState
from ansor.support.text import format_seconds


def run_export(given: argparse.Namespace, console: Console) -> int:
    """Write a network or an operator as C, with recorded programs, and programs that the model picks."""
    own = given.isas == NATIVE or given.isas is None and bool(given.target)
    isas = instruction_sets(given.isas.split(",") if given.isas and not own else DEFAULT)  # reports errors before the file runs
    with doing(console, f"reading {given.subject}"):
        subject = resolve(given.subject, given.args)
    operator = isinstance(subject, OperatorSubject)
    if given.target and given.isas and not operator:
        raise ArgumentError(f"asked to export {given.subject} for both --target {given.target} and --isas {given.isas}; give one of them")
    if given.isas and operator:
        raise ArgumentError(f"asked to export {given.subject}, an operator, with --isas, which is for networks; name one processor: --target 'cpu -mcpu=NAME'")
    if given.constants and not operator:
        raise ArgumentError(f"asked to export {given.subject}, a network, with --constants, which is for operators; a network has its own, leave it out")
    check_folder(given.export, "--export")
    records = records_of(given, subject)
    check_records_exist(given, records)
    if isinstance(subject, OperatorSubject):
        return _operator(given, subject, records, console)
    if own:
        return _own(given, subject, records, console)
    return _network(given, subject, [one.name for one in isas if one != FALLBACK], records, console)


def _network(given: argparse.Namespace, subject: NetworkSubject, isas: Sequence[str], records: Path, console: Console) -> int:
    with doing(console, f"making the model of {subject.name}"):
        model, inputs = made(subject)
    start, kept = time.monotonic(), records if records.exists() else None
    asked = api.ExportKeywords(threads=given.threads or 1, records=kept, cost_model=given.model, progress=ProgressView(console))
    asked["isas"] = isas
    return _say_exported(api.export(model, inputs, given.export, **asked), start, console)


def _own(given: argparse.Namespace, subject: NetworkSubject, records: Path, console: Console) -> int:
    """Export a network for one processor, that of the target or of the records."""
    check_file(records)
    target = target_for(given, records, console)
    check_loads_here(target)
    with doing(console, f"making the model of {subject.name}"):
        model, inputs = made(subject)
    start, states = time.monotonic(), list[TaskState]()
    network = api.compile(
        model, inputs, target, trials=0, records=records if records.exists() else None, cost_model=given.model, library=False,
        progress=ProgressView(console), on_tasks=states.extend,
    )  # fmt: skip
    say_origin(states, target, console)
    return _say_exported(network.export(given.export, inputs), start, console)


def _say_exported(folder: Path, start: float, console: Console) -> int:
    console.print(f"exported to {folder} in {format_seconds(time.monotonic() - start)}; {folder / 'README.md'} says how to build and call it")
    return 0


def _operator(given: argparse.Namespace, subject: OperatorSubject, records: Path, console: Console) -> int:
    check_file(records)
    target = target_for(given, records, console)
    if not target.is_local:
        raise ArgumentError(f"asked to export {subject.title} for {target}, whose programs do not run here; use --output, which writes C with a self-test, too")
    check_loads_here(target)
    check_machine(target, measures=False)
    check_tools(target)
    start, state = time.monotonic(), recorded_state(subject.task(target), records)
    say_unused([state], records, partial(say, console), partial(say, console))
    (kernel,) = results([state.task], [chosen(state, given.model)], target.toolchain())
    assert isinstance(kernel, Kernel)  # the target is local
    missing = [one.name for one in kernel.arguments if one.role == "constant"]
    if missing and not given.constants:
        cure = f"give --constants FILE.npz, a file of numpy.savez with {', '.join(missing)}"
        raise ArgumentError(f"asked to export {subject.title}, whose C holds its constants, without their values; {cure}")
    kernel.bind_constants(_constants(given.constants) if given.constants else {})
    return _say_exported(kernel.export(given.export), start, console)


def _constants(file: str) -> Mapping[str, NDArray[np.generic]]:
    """The arrays of a file of numpy.savez, by name. Raises ArgumentError for another file."""
    try:
        held = np.load(file, allow_pickle=False)
        if isinstance(held, np.ndarray):
            raise ValueError(file)
        with held:
            return {name: held[name] for name in held.files}
    except OSError as error:
        raise ArgumentError(f"asked for the constants in {file}, which cannot be read ({error.strerror or error}); name another file") from error
    except (ValueError, BadZipFile, EOFError) as error:
        raise ArgumentError(f"asked for the constants in {file}, which is not a file of named arrays; give one that numpy.savez wrote") from error
