"""`ansor bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.as_json import notes_of, say_json
from ansor.commands.bench_text import Bench, Side, show
from ansor.commands.common import WARM, check_records_exist, doing, evaluating, largest_error, made, make_console, records_of
from ansor.commands.group_times import group_times
from ansor.commands.recorded_target import target_for
from ansor.commands.subject import NetworkSubject, resolve
from ansor.errors import ArgumentError
from ansor.measure.interleaved import Times, interleaved, ratio
from ansor.measure.record import check_file
from ansor.measure.record_place import make_place
from ansor.networks.runtimes import RUNTIMES, ModelCall, made_ready
from ansor.onnx.model_file import is_float
from ansor.run.machine_checks import check_loads_here, check_machine, check_tools
from ansor.run.machine_peak import machine_peak
from ansor.run.progress import ProgressView
from ansor.run.states import TaskState
from ansor.support.text import counted
from ansor.targets.base import Target

LONGEST_SECONDS = 120.0
"""Time limit for all turns together, in seconds. A few turns always run."""


def run_bench(given: argparse.Namespace) -> int:
    """Compare a network's time with other runtimes, and print where its time goes."""
    console = make_console()
    notes = notes_of(given, console)
    with doing(notes, f"reading {given.subject}"):
        subject = _network(given)
    records = records_of(given, subject)
    if not _tunes(given):
        check_records_exist(given, records)
    check_file(records)
    target = target_for(given, records, notes)
    check_loads_here(target)
    check_machine(target, measures=True)
    check_tools(target)
    found = _bench(given, subject, target, records, notes)
    if given.json:
        say_json(console, {**vars(found), "limit": found.limit})
    else:
        show(found, console)
    return 0


def _network(given: argparse.Namespace) -> NetworkSubject:
    """The network named on the command line. Raises ArgumentError unless it is a float network."""
    if given.subject.endswith(".pt2") or (given.subject.endswith(".onnx") and not is_float(given.subject)):
        raise ArgumentError(f"asked to bench {given.subject}, an int8 network, which the other runtimes here cannot run; use `ansor compile`")
    subject = resolve(given.subject)
    if isinstance(subject, NetworkSubject):
        return subject
    raise ArgumentError(f"asked to bench {given.subject}, which is an operator; name a network, or use `ansor tune {given.subject}` for operators")


def _tunes(given: argparse.Namespace) -> bool:
    return bool(given.trials or given.minutes)


def _bench(given: argparse.Namespace, subject: NetworkSubject, target: Target, records: Path, notes: Console) -> Bench:
    with doing(notes, f"making the model of {subject.name}"):
        model, inputs = made(subject)  # says so if PyTorch is missing
    import torch

    from ansor.graph.export import split_inputs
    from ansor.graph.network import torch_threads
    from ansor.graph.step_seconds import StepClock

    asks = _tunes(given)
    if asks:
        make_place(records)
    states: list[TaskState] = []
    network = api.compile(
        model, inputs, target, trials=given.trials if asks else 0, minutes=given.minutes, seed=given.seed,
        records=records if asks or records.exists() else None, library=not given.no_library, progress=ProgressView(notes, target), on_tasks=states.extend,
    )  # fmt: skip
    args, kwargs = split_inputs(inputs)
    assert callable(model)
    call = ModelCall(model, args, kwargs, Path(given.subject) if given.subject.endswith(".onnx") else None)
    with torch.no_grad(), torch_threads(target.threads), evaluating(model):
        error = largest_error(network(*args, **kwargs), call())
        with doing(notes, "preparing the other runtimes, which may take minutes"):
            others = {name: made_ready(name, call) for name in RUNTIMES}
        steps = StepClock(network, (args, kwargs))
        sides = _sides(lambda: network(*args, **kwargs), steps, others, given.turns, notes)
    with doing(notes, "measuring this machine's peak"):
        peak = machine_peak(target)
    groups = group_times([name for name, _ in network.steps], steps.seconds, states, peak)
    return Bench(subject.name, str(target), target.threads, sum(state.trials for state in states), error, peak, sides, groups)


def _sides(
    ours: Callable[[], object], steps: Callable[[], object], others: Mapping[str, Callable[[], object] | str], turns: int, notes: Console
) -> list[Side]:
    """All runtimes, timed alternately. steps: calls of ours that time each step."""
    with doing(notes, f"timing {counted(turns, 'turn')}"):
        calls = {"ours": ours, "steps": steps} | {name: one for name, one in others.items() if not isinstance(one, str)}
        times = interleaved(calls, turns, LONGEST_SECONDS, warm=WARM)
    return [_side("ours", times["ours"], times), *(_side(name, times["ours"], times, one if isinstance(one, str) else "") for name, one in others.items())]


def _side(name: str, ours: Times, times: Mapping[str, Times], problem: str = "") -> Side:
    return Side(name, None, None, problem) if problem else Side(name, times[name].median, ratio(ours, times[name]))
