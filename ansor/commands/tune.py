"""`ansor tune`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.common import compare, peak_gflops, records_of, save_kernels, target_of
from ansor.errors import AnsorError
from ansor.progress import ProgressView, task_table
from ansor.subject import NetworkSubject, OperatorSubject, resolve
from ansor.targets.base import Target
from ansor.task import SearchTask
from ansor.text import format_seconds
from ansor.tuning import TaskState

OPERATOR_TRIALS, NETWORK_TRIALS = 128, 400


def run_tune(given: argparse.Namespace) -> int:
    """Tune what was named and say what was reached."""
    console = Console(highlight=False)
    subject = resolve(given.subject, given.args)
    target = target_of(given)
    records = records_of(given, subject)
    peak = peak_gflops(target)
    console.print(f"{subject.name} for {target}; trials are kept in {records}", soft_wrap=True)
    if peak is not None:
        console.print(f"peak of {target.threads} thread{'s' if target.threads > 1 else ''}: {peak:.0f} GFLOP/s (fp32)")
    if isinstance(subject, OperatorSubject):
        return _tune_operator(given, subject, target, records, peak, console)
    return _tune_network(given, subject, target, records, peak, console)


def _tune_operator(
    given: argparse.Namespace, subject: OperatorSubject, target: Target, records: Path, peak: float | None, console: Console
) -> int:
    task = SearchTask(subject.function, subject.args, target)
    with ProgressView(console, [1.0], peak) as view:
        states = api.tune_tasks(
            [task], trials=given.trials or OPERATOR_TRIALS, records=records, seed=given.seed, early_stop=given.early_stop,
            report=view.say, on_progress=view.update,
        )  # fmt: skip
    console.print(task_table(states, peak))
    _save(given, states, target, console)
    return _status(states)


def _tune_network(
    given: argparse.Namespace, subject: NetworkSubject, target: Target, records: Path, peak: float | None, console: Console
) -> int:
    tuned: list[TaskState] = []
    view = ProgressView(console, [], peak)
    with view:
        network = api.compile(
            subject.model(), subject.example_inputs(), target, trials=given.trials or NETWORK_TRIALS, records=records, seed=given.seed,
            report=view.say, on_start=view.expect, on_progress=view.update, on_tasks=tuned.extend,
        )  # fmt: skip
    console.print(task_table(tuned, peak))
    _save(given, tuned, target, console)
    if not given.no_compare:
        print_comparison(network, subject, target, console)
    return _status(tuned)


def print_comparison(network: object, subject: NetworkSubject, target: Target, console: Console) -> None:
    """Ours beside PyTorch: latency, ratio, difference of the results."""
    from ansor.graph.network import CompiledNetwork

    if not isinstance(network, CompiledNetwork):
        raise AnsorError("only a compiled network can be compared with PyTorch")
    found = compare(network, subject, target.threads)
    console.print(
        f"{subject.name}: {format_seconds(found.ours)}, PyTorch {format_seconds(found.torch)}: {found.torch / found.ours:.2f} x as fast "
        f"({target.threads} thread{'s' if target.threads > 1 else ''}, medians of interleaved runs); largest relative difference {found.error:.1e}",
        soft_wrap=True,
    )


def _save(given: argparse.Namespace, states: list[TaskState], target: Target, console: Console) -> None:
    if given.output:
        count = save_kernels(states, given.output, target, api.chosen)
        console.print(f"{count} kernels saved in {given.output}")


def _status(states: list[TaskState]) -> int:
    return 0 if all(state.best is not None or state.trials == 0 for state in states) else 1
