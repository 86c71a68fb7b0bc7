"""Trials per second on simulated boards: QEMU started for each trial, QEMU behind its GDB server, two of these, and Spike behind remote bitbang.

    python benchmarks/board_trials.py [--trials 192] [--rounds 3] [--ways QEMU]

Layers of 8-bit integers are tuned alternately, from scratch and with another seed in each round; the table has medians over rounds. Convolutions take longer
to compile, large layers longer to emulate. It needs qemu-system-arm, and spike with dtc.

Each figure comes from a separate process, which has compiled nothing before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ansor import te
from ansor.api import tune_tasks
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.micro_baselines import CONV, DENSE, DEPTHWISE, M4, Row
from tests.measure.wire.simulated_boards import qemu
from tests.spikes import running_spike

CORTEX_M4, RISCV = "micro -board=mps2-an386", "micro -board=spike-rv64"
NAMED = {"conv 3x3 16-32": CONV, "depthwise 3x3 64": DEPTHWISE, "dense 640-128": DENSE}


def dense(n: int, k: int, m: int) -> list[Tensor]:
    """Products of bytes, summed in 32 bits; weights [m, k]."""
    a, b = te.placeholder((n, k), "int8", name="A"), te.placeholder((m, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=r), name="C")]


def square(target: str) -> SearchTask:
    """64 vectors at a time: not a layer of a typical network for boards, but long work for an emulator."""
    return SearchTask(tensors=dense(64, 256, 256), target=target, name="dense 64 times 256-256")


def layer(row: Row, target: str) -> SearchTask:
    """A layer of networks for boards."""
    return replace(row, board=target.partition("-board=")[2]).task()


LAYERS: dict[str, Callable[[str], SearchTask]] = {
    "dense 64 times 256-256": square,
    **{row.name: partial(layer, row) for row in (Row(name, M4, geometry, (), 1.0) for name, geometry in NAMED.items())},
}


@dataclass(frozen=True)
class Way:
    """A way to measure: on boards that it starts, or on the target's own device. An idle Spike keeps a core busy, so it must not run during other ways."""

    name: str
    target: str
    boards: Callable[[], AbstractContextManager[tuple[str, ...] | None]] = nullcontext


@contextmanager
def debugged(count: int) -> Iterator[tuple[str, ...]]:
    """Starts this many Cortex-M4 boards behind GDB."""
    with ExitStack() as stack:
        ports = [stack.enter_context(qemu("cortex-m4", "-icount", "shift=7")) for _ in range(count)]
        yield tuple(f"gdb://127.0.0.1:{port}" for port in ports)


@contextmanager
def bitbanged() -> Iterator[tuple[str, ...]]:
    """Starts a Spike behind remote bitbang."""
    with running_spike(64, ("--isa=rv64gc",)) as spike:
        yield (spike,)


WAYS = (
    Way("QEMU, started for each trial", CORTEX_M4),
    Way("QEMU behind GDB", CORTEX_M4, partial(debugged, 1)),
    Way("two QEMUs behind GDB", CORTEX_M4, partial(debugged, 2)),
    Way("Spike behind remote bitbang", RISCV, bitbanged),
)


def trials_a_second(way: Way, trials: int, layer: Callable[[str], SearchTask] = square, seed: int = 0) -> float:
    """Trials per second of one run."""
    task = layer(way.target)
    with way.boards() as devices:
        start = time.monotonic()
        (state,) = tune_tasks([task], trials=trials, devices=devices, seed=seed)
        seconds = time.monotonic() - start
    assert state.best is not None
    return state.trials / seconds


def in_a_process(way: str, trials: int, layer: str, seed: int) -> float:
    """Trials per second of one run in a new process, for names of `WAYS` and `LAYERS`."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_named, way, trials, layer, seed).result()


def _named(way: str, trials: int, layer: str, seed: int) -> float:
    return trials_a_second(next(one for one in WAYS if one.name == way), trials, LAYERS[layer], seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", default="", help="only ways whose names contain this")
    given = parser.parse_args()
    ways = [way.name for way in WAYS if given.ways in way.name]
    if not ways:
        parser.error(f"asked for ways with {given.ways!r} in their names, and found none; use a part of: {'; '.join(way.name for way in WAYS)}")
    table = Table(title=f"trials per second, {given.trials} trials, median of {given.rounds}")
    table.add_column("layer")
    for way in ways:
        in_a_process(way, 16, next(iter(LAYERS)), 0)  # builds once what compilers need
        table.add_column(way, justify="right")
    for layer in LAYERS:
        found: dict[str, list[float]] = {way: [] for way in ways}
        for seed in range(given.rounds):
            for way in ways:
                found[way].append(in_a_process(way, given.trials, layer, seed))
        table.add_row(layer, *(f"{statistics.median(rates):.1f}" for rates in found.values()))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
