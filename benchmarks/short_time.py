"""The speed that a search reaches in a tenth of another tuner's time.

    python benchmarks/short_time.py                       # eight operators, three minutes
    python benchmarks/short_time.py --only mm512 c64 --share 0.05

Each operator is tuned for a share of the seconds that TVM's MetaSchedule took for 128 trials of it, and its kernel is timed alone, with constants bound.
MetaSchedule's seconds and GFLOP/s were measured once, on an otherwise idle machine: one thread of a virtual machine with two cores of a Zen 5, tuned for
`-mcpu=znver5`. On another processor, `share` also compares the machines. Operations are those of the declaration: Winograd's algorithm needs fewer. `took` is
the time of the whole `auto_schedule`, which overruns its minutes by the round in progress and by building the kernel.
"""

from __future__ import annotations

import sys
import time

from common import add_target, calls, console, in_one_thread, machine_line, parser, table, target_of
from metaschedule import RIVALS
from operator_sets import LEGEND, mark

import ansor
from ansor.measure.interleaved import interleaved
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

TRIALS = 1_000_000
"""More than any time allows, so that only time is a limit."""


def reached(name: str, seconds: float, target: Target) -> tuple[float, float]:
    """Median GFLOP/s of the kernel found in this many seconds, and the seconds that the search actually took."""
    task = SearchTask(tensors=RIVALS[name].tensors(), target=target, name=name)
    begin = time.perf_counter()
    kernel = ansor.auto_schedule(RIVALS[name].tensors, target=target, trials=TRIALS, minutes=seconds / 60)
    took = time.perf_counter() - begin
    assert isinstance(kernel, ansor.Kernel)
    return task.flop / interleaved(calls(task, {name: kernel}), turns=60)[name].median / 1e9, took


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=RIVALS, default=list(RIVALS), help="operators (default: all)")
    options.add_argument("--share", type=float, default=0.1, help="share of the other tuner's seconds (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    in_one_thread()
    out, target = console(), target_of(given)
    shown = table(f"{given.share:.0%} of MetaSchedule's time, {target}", ["operator"], ["its GFLOP/s", "its seconds", "ours GFLOP/s", "took", "share"])
    fewest = float("inf")
    for name in given.only:
        rival = RIVALS[name]
        gflops, took = reached(name, given.share * rival.seconds, target)
        fewest = min(fewest, gflops / rival.gflops)
        label = f"{name}{mark(rival.tensors())}"
        shown.add_row(label, f"{rival.gflops:.0f}", f"{rival.seconds:.0f}", f"{gflops:.0f}", f"{took:.1f}", f"{gflops / rival.gflops:.2f}")
        print(f"{name}: {gflops:.0f} GFLOP/s in {took:.1f} s", file=sys.stderr, flush=True)
    out.print(shown)
    out.print(LEGEND)
    out.print(f"{'at least as fast on every operator' if fewest >= 1 else 'slower on at least one operator'}. {machine_line()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
