"""`ansor tune`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ansor import api
from ansor.commands.common import Comparison, check_folder, compare, doing, made, make_console, records_of, save_kernels
from ansor.commands.int8 import is_int8, run_int8
from ansor.commands.several_targets import check_one, device_names, devices_of, targets_of
from ansor.commands.step_times import StepTimes, step_times
from ansor.commands.subject import NetworkSubject, OperatorSubject, Subject, resolve
from ansor.ir.dag import tidy_identifier
from ansor.measure.device_kinds import check_devices
from ansor.measure.record import check_file
from ansor.measure.record_place import make_place
from ansor.run.choosing import chosen
from ansor.run.keywords import NetworkKeywords
from ansor.run.machine_checks import check_machine, check_tools
from ansor.run.machine_peak import peak_gflops
from ansor.run.progress import ProgressView, say, task_table
from ansor.run.states import TaskState
from ansor.support.termination import Terminated
from ansor.support.text import counted, format_seconds
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.graph.network import CompiledNetwork

OPERATOR_TRIALS = 128
NETWORK_TRIALS = 400
"""The command's default budgets. The Python functions have none."""


def run_tune(given: argparse.Namespace) -> int:
    """Tune an operator or a network, and print the result."""
    console = make_console()
    targets = targets_of(given)
    for target, devices in devices_of(given, targets).items():
        check_devices(devices, target)
    if is_int8(given):
        check_one(given, "an int8 network")
        return run_int8(given, console, _tuning(given, NETWORK_TRIALS))
    with doing(console, f"reading {given.subject}"):
        subject = resolve(given.subject, given.args)
    if not isinstance(subject, OperatorSubject):
        check_one(given, "a network")
    records = records_of(given, subject)
    for target in targets:
        check_machine(target, measures=True)
        check_tools(target)
    check_file(records)
    check_folder(given.output)
    if isinstance(subject, OperatorSubject):
        return _tune_operator(given, subject, targets, records, console)
    return _tune_network(given, subject, targets[0], records, console)


def _tune_operator(given: argparse.Namespace, subject: OperatorSubject, targets: Sequence[Target], records: Path, console: Console) -> int:
    tasks = [subject.task(target) for target in targets]  # errors appear before anything is measured
    peak = _introduce(subject, targets, records, console)
    trials = _trials(given, OPERATOR_TRIALS * len(targets))
    states = api.tune_tasks(
        tasks, trials=trials, minutes=given.minutes, min_gain=given.min_gain, records=records, devices=devices_of(given, targets),
        seed=given.seed, early_stop=given.early_stop, model=given.model, progress=ProgressView(console, targets[0]),
    )  # fmt: skip
    console.print(task_table(states, peak))
    _save(given, states, targets, console)
    return _status(states)


def _tune_network(given: argparse.Namespace, subject: NetworkSubject, target: Target, records: Path, console: Console) -> int:
    with doing(console, f"making the model of {subject.name}"):
        model, inputs = made(subject)
    peak = _introduce(subject, [target], records, console)
    tuned: list[TaskState] = []
    network = api.compile(
        model, inputs, target, trials=_trials(given, NETWORK_TRIALS), minutes=given.minutes, min_gain=given.min_gain, records=records,
        devices=device_names(given), seed=given.seed, early_stop=given.early_stop, cost_model=given.model, library=not given.no_library,
        progress=ProgressView(console, target), on_tasks=tuned.extend,
    )  # fmt: skip
    console.print(task_table(tuned, peak))
    _save(given, tuned, [target], console)
    if not given.no_compare:
        compare_with_torch(subject.name, (network, model, inputs), tuned, target, console)
    return _status(tuned)


def _tuning(given: argparse.Namespace, trials: int) -> NetworkKeywords:
    """How long to tune, and on which devices."""
    return {"trials": _trials(given, trials), "minutes": given.minutes, "min_gain": given.min_gain, "devices": device_names(given), "seed": given.seed,
            "early_stop": given.early_stop, "cost_model": given.model}  # fmt: skip


def _trials(given: argparse.Namespace, default: int) -> int | None:
    """The requested number of trials; None with only --minutes, the default without either."""
    asked: int | None = given.trials
    return default if asked is None and given.minutes is None else asked


def _introduce(subject: Subject, targets: Sequence[Target], records: Path, console: Console) -> float | None:
    """Print what is tuned, for which targets, and the machine's peak; return the peak in GFLOP/s. Raises RecordError first if records cannot be kept."""
    make_place(records)
    say(console, f"{subject.title} for {' and '.join(map(str, targets))}; trials are kept in {records}")
    with doing(console, "finding the C compiler, and measuring this machine's peak"):
        peak = peak_gflops(targets[0])  # None if that is not this machine
    if peak is not None:
        say(console, f"peak of {threads_text(targets[0])}: {peak:.0f} GFLOP/s (fp32)")
    return peak


def threads_text(target: Target) -> str:
    """`1 thread`, `2 threads`."""
    return counted(target.threads, "thread")


def compare_with_torch(
    name: str, compared: tuple[CompiledNetwork, object, ExampleInputs], states: Sequence[TaskState], target: Target, console: Console
) -> None:
    """Compare a network with its model in PyTorch on the inputs, and print the result. Ctrl-C skips that."""
    say(console, "comparing with PyTorch; Ctrl-C skips that")
    try:
        found = compare(*compared, target.threads)
        steps = step_times([name for name, _ in compared[0].steps], found.parts, states)
    except KeyboardInterrupt as stopped:
        if isinstance(stopped, Terminated):
            raise
        say(console, "stopped by Ctrl-C: not compared with PyTorch")
        return
    print_comparison(name, found, steps, states, target, console)


def print_comparison(name: str, found: Comparison, steps: StepTimes, states: Sequence[TaskState], target: Target, console: Console) -> None:
    """Print a comparison with PyTorch: latency, ratio, where the time goes, and the difference of the results."""
    say(console, f"{name}: {format_seconds(found.ours)} a call, PyTorch {format_seconds(found.torch)}: {found.torch / found.ours:.2f} x as fast")
    say(console, f"timed within such calls: {steps}; {format_seconds(steps.total)} in total")
    known = [state.weight * state.cost for state in states if state.cost is not None]
    if known:
        say(console, f"measured alone, with warm caches, the measured kernels take {format_seconds(sum(known))} in total")
    say(console, f"medians of alternating calls of the whole network, {threads_text(target)}; largest relative difference {found.error:.1e}")


def _save(given: argparse.Namespace, states: Sequence[TaskState], targets: Sequence[Target], console: Console) -> None:
    """Save the kernels, with a folder for each target if there are several."""
    for target in targets if given.output else ():
        folder = Path(given.output) if len(targets) == 1 else Path(given.output) / tidy_identifier(str(target))
        count = save_kernels([state for state in states if state.task.target == target], folder, target, chosen)
        console.print(f"{counted(count, 'kernel')} saved in {folder}")


def _status(states: list[TaskState]) -> int:
    return 0 if all(state.best is not None or state.trials == 0 for state in states) else 1
