"""Whole trials on boards whose connection has faults: what became of them, by kind.

    python benchmarks/board_faults.py [--schedules 1000] [--minutes 30] [--seed 1]

Each schedule draws faults (bytes that are lost, flipped, cut, late, repeated, silence, connections that break), and a program that is right, wrong, traps or
writes past its output, on QEMU behind its GDB server, on Spike behind remote bitbang and on the monitor behind a serial line, in turns. After each
of them a right program has to run without faults. The status is 1 where anything that is not so was believed, or a link did not come back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.measure.boards.schedules import PROGRAMS, WIRES, run_schedules

PARTS = {"gdb": 80, "bitbang": 40, "serial": 8}  # schedules of one simulator: they take longer, one than the other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wires", nargs="+", choices=list(WIRES), default=list(WIRES))
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    kinds: dict[str, Counter[tuple[str, str]]] = {wire: Counter() for wire in given.wires}
    wrong, lost, faults, longest, part = [], [], 0, 0.0, 0
    while (left := given.schedules - sum(one.total() for one in kinds.values())) > 0 and time.monotonic() < until:
        wire = given.wires[part % len(given.wires)]
        with tempfile.TemporaryDirectory() as folder:
            found = run_schedules(wire, min(PARTS[wire], left), given.seed * 1000 + part, Path(folder), until)
        part += 1
        kinds[wire] += found.kinds
        wrong += found.wrong
        lost += found.lost
        faults, longest = faults + found.again, max(longest, found.longest)
        print(f"{wire}: {found.kinds.total()} schedules, {found.again} faults; wrong {len(found.wrong)}, not back {len(found.lost)}", flush=True)
    table = Table(title=f"{sum(one.total() for one in kinds.values())} schedules, {faults} faults; the longest trial took {longest:.1f} s")
    for column in ("wire", "program", "said of it", "trials"):
        table.add_column(column, justify="right" if column == "trials" else "left")
    for wire, found_kinds in kinds.items():
        for (program, kind), count in sorted(found_kinds.items(), key=lambda one: (list(PROGRAMS).index(one[0][0]), one[0][1])):
            table.add_row(wire, program, kind, str(count))
    Console(width=120).print(table)
    for text in (*(f"wrong: {one}" for one in wrong), *(f"not back: {one}" for one in lost)):
        print(text)
    return 1 if wrong or lost else 0


if __name__ == "__main__":
    sys.exit(main())
