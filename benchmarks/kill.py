"""Kills tuning runs at random moments, and checks that nothing is lost.

    python benchmarks/kill.py                    # 20 kills
    python benchmarks/kill.py --kills 3 --trials 24 --longest 3

A child process tunes a small matrix product and appends to a record file. It gets SIGKILL at a random moment, from importing NumPy to writing a record. After
each kill, the file has to load, with every trial that the child reported and no program twice, and no process of the child may survive. The last run is not
killed: it has to use exactly the budget.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from common import console, parser, short, table

from ansor import te
from ansor.measure.record import Loaded, load
from ansor.te.tensor import Tensor

SIZE = 48
MEASURED = "measured"
DYING_SECONDS = 10.0
"""How long the worker and the compilers may survive the kill."""


def declared() -> list[Tensor]:
    """A small matrix product."""
    a, b = te.placeholder((SIZE, SIZE), name="A"), te.placeholder((SIZE, SIZE), name="B")
    r = te.reduce_axis((0, SIZE), name="k")
    return [a, b, te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def tune(records: Path, trials: int) -> None:
    """The child: prints a line after every trial, once it is recorded."""
    from ansor import api
    from ansor.run.states import Progress

    def told(progress: Progress) -> None:
        print(MEASURED, progress.trials, flush=True)

    api.auto_schedule(declared, target="cpu -threads=1", trials=trials, records=records, on_progress=told)


@dataclass(frozen=True)
class Life:
    """A child's life: seconds, exit status, the number of trials that it reported, and of processes that outlived it."""

    seconds: float
    status: int
    told: int
    orphans: int


def live(records: Path, trials: int, seconds: float | None) -> Life:
    """Start a child, and kill it after this many seconds (None: let it finish)."""
    start = time.monotonic()
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(records), "--trials", str(trials)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        if seconds is not None:
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
        # Only the child writes to the pipe, which can hold thousands of these lines.
        assert child.stdout is not None
        told = sum(line.startswith(MEASURED) and line.endswith("\n") for line in child.stdout)
        status = child.wait()
    took = time.monotonic() - start
    return Life(took, status, told, orphans_of(child.pid))


def orphans_of(session: int) -> int:
    """The number of processes of a session that still run DYING_SECONDS after its leader ended."""
    deadline = time.monotonic() + DYING_SECONDS
    while (left := _of_session(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _of_session(session: int) -> int:
    return sum(_session(entry) == session for entry in Path("/proc").glob("[0-9]*"))


def _session(process: Path) -> int | None:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None  # gone in the meantime
    return int(fields[3]) if fields[0] != "Z" else None


def faults(loaded: Loaded, before: int, life: Life, allowed_torn: int) -> list[str]:
    """What is wrong with a file after a child's life. before: trials in it when the child started."""
    found = []
    count = len(loaded.records)
    if count < before + life.told:
        found.append(f"{before} trials before and {life.told} reported, but {count} recorded")
    if count > before + life.told + 1:
        found.append(f"{count - before} trials recorded, but only {life.told} reported")
    repeated = [key for key, times in Counter((record.sketch, record.row) for record in loaded.records).items() if times > 1]
    if repeated:
        found.append(f"{len(repeated)} programs measured twice")
    if set(loaded.skipped) - {"torn line"} or loaded.skipped.get("torn line", 0) > allowed_torn:
        found.append(f"skipped: {loaded.skipped}")
    if life.orphans:
        found.append(f"{life.orphans} processes survived")
    return found


def recorded(records: Path) -> Loaded:
    """The contents of the file; empty while there is none."""
    return load(records) if records.exists() else Loaded((), (), {})


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=20, help="number of kills (default: %(default)s)")
    options.add_argument("--trials", type=int, default=400, help="budget shared by all runs (default: %(default)s)")
    options.add_argument("--longest", type=float, default=6.0, help="the longest life of a child in seconds (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of the moments (default: %(default)s)")
    options.add_argument("--child", metavar="RECORDS", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        tune(Path(given.child), given.trials)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return killed(Path(folder) / "records.jsonl", given.kills, given.trials, given.longest, Random(given.seed).uniform)


def killed(records: Path, kills: int, trials: int, longest: float, moment: Callable[[float, float], float]) -> int:
    """Kill, check, kill, ..., finish, check; returns the exit status."""
    out = console()
    shown = table(f"kill -9 at {kills} moments, budget {trials}", ["run"], ["lived", "status", "trials before", "reported", "recorded", "torn lines", "faults"])
    wrong, torn = False, 0
    for number in range(kills + 1):
        last = number == kills
        before = len(recorded(records).records)
        life = live(records, trials, None if last else moment(0.1, longest))
        loaded = recorded(records)
        found = faults(loaded, before, life, torn + (not last))
        torn = loaded.skipped.get("torn line", 0)
        if last and (len(loaded.records), life.status) != (trials, 0):
            found.append(f"{len(loaded.records)} trials of {trials}, status {life.status}")
        wrong |= bool(found)
        shown.add_row(
            "not killed" if last else f"kill {number + 1}", short(life.seconds), str(life.status), str(before), str(life.told),
            str(len(loaded.records)), str(torn), "; ".join(found) or "none",
        )  # fmt: skip
    out.print(shown)
    out.print("FAILED" if wrong else "nothing lost, nothing measured twice, the budget kept")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
