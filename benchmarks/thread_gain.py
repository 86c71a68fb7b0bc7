"""How many times as fast our kernels are on several threads, beside what the machine itself gains from them.

    python benchmarks/thread_gain.py                                     # compute-bound operators of the suite, two threads
    python benchmarks/thread_gain.py --only matmul_512 --turns 100
    python benchmarks/thread_gain.py --networks resnet18 bert            # whole networks, called with PyTorch's tensors

A virtual machine does not have all of its processors at all times, and a processor with one busy core runs faster than one with several. So four things are
timed in turns: a kernel, or a network, for one thread, one for all threads (both picked by the model), and a loop of multiply-adds in registers on one thread
and on all. PyTorch uses all threads throughout.
A gain is how many times as much work several threads do in the same time as one: the median, and the middle 80 % of the turns. `share` is our gain relative to
the machine's in the same turn: the median.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from common import calls, console, geomean, machine_line, parser, short, table
from network_models import NETWORKS
from suite import ROWS, Row

from ansor import api
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.measure.interleaved import TURN_SECONDS, Ratio, Times, interleaved, ratio
from ansor.measure.peak import ROUNDS, Probe
from ansor.run.kernels import built
from ansor.run.zero_tuning import pick
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask

BOUND = ("matmul_512", "matmul_1000", "bert_dense_768_3072", "bert_dense_3072_768", "resnet_3x3_64_64_56", "resnet_3x3_128_128_28", "resnet_3x3_256_256_14",
         "resnet_1x1_256_64_56", "resnet_1x1_512_128_28", "resnet_1x1_256_1024_14", "conv1d_64_b16", "dilated_14_b16")  # fmt: skip
"""Compute-bound operators."""

BURST = 4 * ROUNDS
"""Some milliseconds, so that waking the probe's threads does not matter."""


@dataclass(frozen=True)
class Gains:
    """seconds: of our kernel or network on all threads; ours, machine: how many times as much work several threads do as one; share: the one relative to the
    other, turn by turn."""

    name: str
    seconds: float
    ours: Ratio
    machine: Ratio
    share: float


def machine_burst(target: Target) -> Callable[[], object]:
    """A call that keeps all threads of a target busy, each with the same work."""
    probe = Probe(find_compiler(target.compiler), target.vector_bytes, target.threads, target.mcpu)
    pool = ThreadPoolExecutor(target.threads)
    return lambda: list(pool.map(partial(probe.arithmetic, rounds=BURST), range(target.threads)))


def gains(name: str, times: dict[str, Times], threads: int) -> Gains:
    """From the times of the four, by turn."""
    bursts = Times(tuple(seconds / threads for seconds in times["machine on all"].seconds))  # they do `threads` times as much
    ours, machine = ratio(times["ours on all"], times["ours on one"]), ratio(bursts, times["machine on one"])
    shares = [ours_one / ours_all * burst / one for ours_one, ours_all, one, burst in
              zip(times["ours on one"].seconds, times["ours on all"].seconds, times["machine on one"].seconds, bursts.seconds, strict=True)]  # fmt: skip
    return Gains(name, times["ours on all"].median, ours, machine, median(shares))


def operator_call(row: Row, target: Target) -> Callable[[], object]:
    """Pick and build the program of an operator."""
    task = SearchTask(tensors=row.operator().declare(), target=target, name=row.name)
    (kernel,) = built([task], [pick(task).program], CToolchain(find_compiler(target.compiler)))
    return calls(task, {row.name: kernel})[row.name]


def network_call(name: str, target: Target) -> Callable[[], object]:
    """Compile a network, batch 1."""
    inputs = NETWORKS[name].inputs(1)
    return partial(api.compile(NETWORKS[name].model(), inputs, str(target), progress=False), *inputs)


def measured(name: str, call: Callable[[Target], Callable[[], object]], one: Target, several: Target, turns: int) -> Gains:
    """Time what `call` makes for each target, in turns with the machine's own work."""
    functions: dict[str, Callable[[], object]] = {}
    for word, target in (("one", one), ("all", several)):
        functions |= {f"ours on {word}": call(target), f"machine on {word}": machine_burst(target)}
    return gains(name, interleaved(functions, turns, warm=TURN_SECONDS), several.threads)


def show(found: Sequence[Gains], threads: int) -> None:
    """Print a table."""
    rows = table(f"{threads} threads", ["operator or network"], ["time", "our gain", "the machine's", "share"])
    for one in found:
        rows.add_row(one.name, short(one.seconds), str(one.ours), str(one.machine), f"{one.share:.2f}")
    console().print(rows)
    ours, machine, shares = ([getattr(one, name) for one in found] for name in ("ours", "machine", "share"))
    means = [geomean([one.median for one in ours]), geomean([one.median for one in machine]), geomean(shares)]
    console().print(f"geometric means: our gain {means[0]:.2f}, the machine's {means[1]:.2f}, share {means[2]:.2f} (least {min(shares):.2f})\n{machine_line()}")


def options() -> argparse.Namespace:
    """The command line."""
    found = parser(__doc__)
    found.add_argument("--target", default="cpu", help="target text without threads (default: %(default)s, this machine)")
    found.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    found.add_argument("--turns", type=int, default=60, help="(default: %(default)s)")
    found.add_argument("--only", nargs="+", default=BOUND, choices=[row.name for row in ROWS], metavar="NAME", help="operators of the suite")
    found.add_argument("--networks", nargs="+", default=[], choices=list(NETWORKS), metavar="NAME", help="networks in place of operators")
    return found.parse_args()


def main() -> None:
    given = options()
    one, several = (parse_target(f"{given.target} -threads={threads}") for threads in (1, given.threads))
    torch.set_num_threads(given.threads)
    made = {name: partial(network_call, name) for name in given.networks} or {row.name: partial(operator_call, row) for row in ROWS if row.name in given.only}
    show([measured(name, call, one, several, given.turns) for name, call in made.items()], given.threads)


if __name__ == "__main__":
    main()
