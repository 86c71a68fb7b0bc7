"""Trials a second on simulated boards: QEMU started for each trial, QEMU behind its GDB server, two of these, and Spike behind remote bitbang.

    python benchmarks/board_trials.py [--trials 48] [--rounds 3]

A dense layer of 8-bit integers is tuned in turns, from nothing each time; the median of the rounds is shown. Needs qemu-system-arm, and spike with dtc.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ansor import te
from ansor.api import tune_tasks
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.measure.wire.simulated_boards import qemu
from tests.spikes import running_spike

CORTEX_M4, RISCV = "micro -board=mps2-an386", "micro -board=spike-rv64"


def dense(n: int, k: int, m: int) -> list[Tensor]:
    """Bytes times bytes, in sums of 32 bits; weights [m, k]."""
    a, b = te.placeholder((n, k), "int8", name="A"), te.placeholder((m, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=r), name="C")]


def trials_a_second(target: str, devices: Sequence[str] | None, trials: int) -> float:
    """Of one run."""
    task = SearchTask(tensors=dense(64, 256, 256), target=target, name="dense")
    start = time.monotonic()
    (state,) = tune_tasks([task], trials=trials, devices=devices)
    assert state.best is not None
    return state.trials / (time.monotonic() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with ExitStack() as stack:
        first, second = (f"gdb://127.0.0.1:{stack.enter_context(qemu('cortex-m4', '-icount', 'shift=7'))}" for _ in range(2))
        spike = stack.enter_context(running_spike(64, ("--isa=rv64gc",)))
        ways: dict[str, Callable[[], float]] = {
            "QEMU, started for each trial": lambda: trials_a_second(CORTEX_M4, None, given.trials),
            "QEMU behind GDB": lambda: trials_a_second(CORTEX_M4, [first], given.trials),
            "two QEMUs behind GDB": lambda: trials_a_second(CORTEX_M4, [first, second], given.trials),
            "Spike behind remote bitbang": lambda: trials_a_second(RISCV, [spike], given.trials),
        }
        for way in ways.values():
            way()  # compilers build what they need once
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.rounds):
            for name, way in ways.items():
                found[name].append(way())
    table = Table(title=f"trials a second, {given.trials} trials, median of {given.rounds}")
    table.add_column("board")
    table.add_column("trials/s", justify="right")
    for name, rates in found.items():
        table.add_row(name, f"{statistics.median(rates):.1f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
