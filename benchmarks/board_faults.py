"""Runs whole trials on boards with faulty connections, and counts their outcomes by kind.

    python benchmarks/board_faults.py [--schedules 1000] [--jobs 6] [--minutes 30] [--seed 1]

Each schedule draws faults (bytes that are lost, flipped, cut, late or repeated, silence, broken connections), and a program that is correct, is wrong, traps or
writes past its output. They run on QEMU behind its GDB server, on Spike behind remote bitbang and on the monitor behind a serial line. After each schedule, a
correct program has to run without faults. Exits with 1 if a wrong result was accepted, a link did not recover, or not all schedules ran in time.

Most of the time is spent waiting for answers that do not arrive, so several jobs run in parallel, each with its own simulators. The schedules depend only on
the seed, not on the number of jobs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.measure.boards.schedules import PROGRAMS, WIRES, Found, run_schedules

PARTS = {"gdb": 20, "bitbang": 10, "serial": 10}  # schedules per simulator


@dataclass(frozen=True)
class Part:
    """Schedules that share a simulator."""

    wire: str
    schedules: int
    seed: int

    def run(self, until: float) -> Found:
        """Run the schedules until `time.monotonic()` reaches `until`."""
        with tempfile.TemporaryDirectory() as folder:
            return run_schedules(self.wire, self.schedules, self.seed, Path(folder), until)


def planned(schedules: int, wires: Sequence[str], seed: int) -> list[Part]:
    """This many schedules, spread over these wires."""
    parts: list[Part] = []
    while schedules > 0:
        wire = wires[len(parts) % len(wires)]
        parts.append(Part(wire, min(PARTS[wire], schedules), seed * 1000 + len(parts)))
        schedules -= parts[-1].schedules
    return parts


def run_parts(parts: Sequence[Part], jobs: int, until: float) -> dict[str, Found]:
    """The results by wire. Each job is a separate process, because shortened waits apply to a whole process."""
    total = {part.wire: Found() for part in parts}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(part.run, until): part for part in parts}
        for done in as_completed(running):
            part, found = running[done], done.result()
            total[part.wire] = total[part.wire].joined(found)
            what = f"{found.kinds.total()} schedules, {found.again} faults; wrong {len(found.wrong)}, not recovered {len(found.lost)}"
            print("\n  ".join([f"{part.wire}, seed {part.seed}: {what}", *found.wrong, *found.lost]), flush=True)
    return total


def table_of(total: dict[str, Found]) -> Table:
    """Trials by wire, program and verdict."""
    schedules, faults = sum(one.kinds.total() for one in total.values()), sum(one.again for one in total.values())
    table = Table(title=f"{schedules} schedules, {faults} faults; the longest trial took {max(one.longest for one in total.values()):.1f} s")
    for column in ("wire", "program", "verdict", "trials"):
        table.add_column(column, justify="right" if column == "trials" else "left")
    for wire, found in total.items():
        for (program, kind), count in sorted(found.kinds.items(), key=lambda one: (list(PROGRAMS).index(one[0][0]), one[0][1])):
            table.add_row(wire, program, kind, str(count))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wires", nargs="+", choices=list(WIRES), default=list(WIRES))
    given = parser.parse_args()
    began = time.monotonic()
    total = run_parts(planned(given.schedules, given.wires, given.seed), given.jobs, began + 60 * given.minutes)
    Console(width=120).print(table_of(total))
    bad = [f"{wire}: {what}: {text}" for wire, one in total.items() for what, texts in (("wrong", one.wrong), ("not recovered", one.lost)) for text in texts]
    for text in bad:
        print(text)
    missing = given.schedules - sum(one.kinds.total() for one in total.values())
    print(f"{(time.monotonic() - began) / 60:.1f} minutes" + (f"; {missing} schedules did not run in time" if missing else ""))
    return 1 if bad or missing else 0


if __name__ == "__main__":
    sys.exit(main())
