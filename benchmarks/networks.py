"""Whole networks compared with PyTorch eager and ONNX Runtime: compile or tune, compare outputs, then time all of them alternately in one process.

    python benchmarks/networks.py                                          # 15 networks, nothing tuned, one thread, batch 1
    python benchmarks/networks.py resnet18 bert --batch 8 --threads 2
    python benchmarks/networks.py resnet50 --minutes 10 --records build/networks
    python benchmarks/networks.py resnet18 --kernels                       # a row for each kernel, too
    python benchmarks/networks.py others                                   # 30 models of timm (needs timm)
    python benchmarks/networks.py timm:densenet121                         # any model of timm
    python benchmarks/networks.py --table --plot build/networks.svg        # runs nothing: shows the results file

Each network runs in a separate process. A finished one is a line in the results file; with the same settings, at the same commit, it is not run again. Ratios
are taken turn by turn: median, and the range of the middle 80 %; above 1, ours is faster. `error`: largest difference from PyTorch's output over its largest
element. `own`: share of a call's time outside PyTorch's steps. `sum`: total time of the parts of a call (each step, and checking and copying inputs and
results), which are timed within calls in the same turns, over the time of a call. `limit`: time of a call over what it would be if every kernel ran at the
roofline of the measured peak, with the algorithm of fewest operations (`ansor bench` prints it for each group): how much faster a call could be at most.
`ready`: seconds of `ansor.compile`, the first time (tuning included, if any) and once more in a new process. `trials` are those of the whole network. Weights
are random. Exits with 1 if a network is slower than ONNX Runtime, or wrong, or if its process fails.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import provenance
import torch
from common import add_target, console, geomean, machine_line, parser, records_at, relative_error, short, table, target_of, use_threads
from network_models import NETWORKS, OTHERS, TIMM, Inputs, network
from network_results import Result, Settings, load, of_json
from rich.console import Console

from ansor import api
from ansor.codegen.toolchain import processor_name
from ansor.commands.group_times import group_times, limit_of
from ansor.graph.network import CompiledNetwork
from ansor.graph.step_seconds import StepClock
from ansor.measure.interleaved import interleaved, ratio
from ansor.networks.runtimes import ModelCall, eager, onnxruntime
from ansor.run.machine_peak import machine_peak
from ansor.run.progress import ProgressView
from ansor.run.states import TaskState

TOLERANCE = 1e-3
AIM = 1.0
WARM = 0.05
RESULTS = Path("build") / "networks.jsonl"
RIVALS = ("eager", "onnxruntime")


def compiled(name: str, model: torch.nn.Module, inputs: Inputs, given: argparse.Namespace, out: Console) -> tuple[CompiledNetwork, list[TaskState]]:
    """Tune a network within the budget, and build it."""
    states: list[TaskState] = []
    network = api.compile(
        model, inputs, str(target_of(given)), trials=given.trials, minutes=given.minutes, min_gain=0.0, records=records_at(given.records, name),
        progress=ProgressView(out), on_tasks=states.extend,
    )  # fmt: skip
    return network, states


def show_kernels(network: CompiledNetwork, seconds: Sequence[float], states: Sequence[TaskState], out: Console) -> None:
    """Print a row for each task: its uses, their total seconds and share, and its rate."""
    uses: dict[str, list[float]] = defaultdict(list)
    for (name, _), one in zip(network.steps, seconds, strict=True):
        uses[name].append(one)
    flop = {state.task.name: state.task.flop for state in states}
    shown = table("kernels", ["kernel"], ["uses", "all uses", "share", "GFLOP/s"])
    for name, found in sorted(uses.items(), key=lambda item: -sum(item[1])):
        rate = f"{flop[name] * len(found) / sum(found) / 1e9:.0f}" if name in flop else "-"
        shown.add_row(name, str(len(found)), short(sum(found)), f"{100 * sum(found) / sum(seconds):.1f} %", rate)
    out.print(shown)


def run(name: str, given: argparse.Namespace, out: Console) -> Result:
    """Compile a network, compare its output with PyTorch's, and time all sides."""
    use_threads(given.threads)
    model, inputs = network(name).model(), network(name).inputs(given.batch)
    begin = time.perf_counter()
    ours, states = compiled(name, model, inputs, given, out)
    ready = time.perf_counter() - begin
    with torch.no_grad():
        wanted, found = model(*inputs), ours(*inputs)
        error = relative_error(found, wanted)
        call = ModelCall(model, inputs)
        steps = StepClock(ours, (inputs, {}))
        sides: dict[str, Callable[[], object]] = {"ours": lambda: ours(*inputs), "steps": steps, "eager": eager(call), "onnxruntime": onnxruntime(call)}
        times = interleaved(sides, given.turns, warm=WARM)
    parts = steps.seconds
    if given.kernels:
        show_kernels(ours, parts.steps, states, out)
    peak = machine_peak(target_of(given))
    limit = math.nan if peak is None else limit_of(group_times([name for name, _ in ours.steps], parts, states, peak))
    theirs = sum(one for (step, _), one in zip(ours.steps, parts.steps, strict=True) if step.startswith("torch "))
    ratios = {side: ratio(times["ours"], times[side]) for side in RIVALS}
    return Result(
        name, settings_of(given), {side: one.median for side, one in times.items()}, ratios, error, 1 - theirs / parts.total,
        parts.total / times["ours"].median, sum(state.trials for state in states), (ready,), times["ours"].median / limit,
    )  # fmt: skip


def settings_of(given: argparse.Namespace) -> Settings:
    """The settings of this run."""
    return Settings(str(target_of(given)), processor_name(), given.batch, given.trials, given.minutes, given.turns, provenance.commit())


def ready_again(name: str, given: argparse.Namespace, out: Console) -> float:
    """Seconds of compiling a network that was compiled or tuned before."""
    use_threads(given.threads)
    model, inputs = network(name).model(), network(name).inputs(given.batch)
    given.trials, given.minutes = 0, None
    begin = time.perf_counter()
    compiled(name, model, inputs, given, out)
    return time.perf_counter() - begin


def child(name: str, given: argparse.Namespace, what: str) -> object:
    """The JSON in the last line that a separate process prints. Raises RuntimeError if the process fails."""
    command = [sys.executable, *sys.argv, "--child", what, "--only", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    if process.returncode:
        raise RuntimeError(f"{name}: the process ended with status {process.returncode}")
    print(*lines[:-1], sep="\n", end="\n" if lines[1:] else "")
    return json.loads(lines[-1])


def measured(name: str, given: argparse.Namespace) -> Result:
    """A network's result, from two processes: one that compares it, and one that compiles it again. Raises RuntimeError if one fails."""
    fields = child(name, given, "run")
    assert isinstance(fields, dict)
    fields["ready"] = [*fields["ready"], child(name, given, "again")]
    return of_json(fields)


def show(results: Sequence[Result], given: argparse.Namespace, out: Console) -> None:
    """Print the table and its summary."""
    columns = ["ours", "eager / ours", "ONNX Runtime / ours", "error", "own", "sum", "limit", "trials", "ready"]
    shown = table(f"{target_of(given)}, batch {given.batch}, medians of {given.turns} turns, middle 80 %", ["network"], columns)
    for one in results:
        own, total, limit, ready = f"{100 * one.own:.1f} %", f"{one.sum:.3f}", f"{one.limit:.2f}", " ".join(f"{seconds:.1f} s" for seconds in one.ready)
        error = f"{one.error:.0e}{'' if one.error <= TOLERANCE else ' WRONG'}"
        shown.add_row(one.name, short(one.seconds["ours"]), *(str(one.ratios[side]) for side in RIVALS), error, own, total, limit, str(one.trials), ready)
    out.print(shown)
    for side, title in zip(RIVALS, ("PyTorch eager", "ONNX Runtime"), strict=True):
        each, most = [one.ratios[side].median for one in results], [one.ratios[side].median * one.limit for one in results]
        out.print(
            f"{title}: ours is {geomean(each):.2f} times as fast (geometric mean of {len(each)}), minimum {min(each):.2f}; at the roofline it would be "
            f"{geomean(most):.2f}, minimum {min(most):.2f}"
        )
    out.print(f"{machine_line()}; results of {', '.join(sorted({one.settings.commit or 'an unknown commit' for one in results}))}")


def missed(one: Result) -> bool:
    """Whether it is wrong, or slower than ONNX Runtime."""
    return one.error > TOLERANCE or one.ratios["onnxruntime"].median < AIM


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="network", help=f"of {', '.join(NETWORKS)} (default: all), timm:NAME, or others: 30 models of timm")
    options.add_argument("--batch", type=int, default=1, help="batch size (default: %(default)s)")
    options.add_argument("--trials", type=int, help="programs measured for a network (default without --minutes: 0)")
    options.add_argument("--minutes", type=float, help="wall time of tuning a network")
    options.add_argument("--turns", type=int, default=30, help="turns of the comparison (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to a record file for each network")
    options.add_argument("--results", type=Path, default=RESULTS, help="file of results (default: %(default)s)")
    options.add_argument("--kernels", action="store_true", help="also print a row for each kernel")
    options.add_argument("--table", action="store_true", help="print the results file, run nothing")
    options.add_argument("--plot", type=Path, metavar="FILE", help="plot the ratios")
    options.add_argument("--child", choices=("run", "again"), help=argparse.SUPPRESS)
    options.add_argument("--only", help=argparse.SUPPRESS)
    add_target(options)
    given = options.parse_args()
    given.trials = 0 if given.trials is None and given.minutes is None else given.trials
    given.names = [one for name in given.names for one in (OTHERS if name == "others" else (name,))] or list(NETWORKS)
    try:
        for name in () if given.child else given.names:
            if not given.table or not name.startswith(TIMM):  # a table needs no other library
                network(name)
    except ValueError as error:
        options.error(str(error))
    warnings.simplefilter("ignore")
    if given.child:
        found = run(given.only, given, Console(stderr=True)) if given.child == "run" else ready_again(given.only, given, Console(stderr=True))
        print(json.dumps(asdict(found) if isinstance(found, Result) else found))
        return 0
    return compare(given, console())


def compare(given: argparse.Namespace, out: Console) -> int:
    """Run the networks that the results file lacks, and show all results. A table shows the newest, of any commit."""
    wanted = settings_of(given)
    usable = given.table or not wanted.commit.endswith("+")  # changes that are not committed may be others by now
    known = {}
    for one in load(given.results) if usable else []:
        if (replace(one.settings, commit=wanted.commit) if given.table else one.settings) == wanted:
            known[one.name] = one
    failed = []
    for name in given.names:
        if name in known or given.table:
            continue
        out.print(name)
        try:
            known[name] = measured(name, given)
        except RuntimeError as error:
            out.print(str(error))
            failed.append(name)
            continue
        given.results.parent.mkdir(parents=True, exist_ok=True)
        with given.results.open("a") as file:
            file.write(json.dumps(asdict(known[name])) + "\n")
    results = [known[name] for name in given.names if name in known]
    if failed:
        out.print(f"without a result, because their processes failed: {', '.join(failed)}")
    elif not results:
        out.print(f"asked for results with these settings in {given.results}, which has none; run without --table")
    if not results:
        return 1
    show(results, given, out)
    if given.plot:
        from plot_networks import draw  # matplotlib is needed for nothing else

        draw(given.plot, results, f"{target_of(given)}, batch {given.batch}")
    return int(bool(failed) or any(map(missed, results)))


if __name__ == "__main__":
    sys.exit(main())
