"""Times recorded programs of the data set again, in turns, and keeps the new times.

    ansor dataset collect build/layers --threads 1 --only network_layer --search tuning --trials 16
    python benchmarks/dataset_turns.py build/layers --threads 1

Collecting times one program after another. Where other users' load comes and goes, its times of two good programs differ by more than the programs do. Here the
programs of a task that took at most three times as long as the best run in turns, so that load slows all of them alike. A record gets the five least times of
the turns.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from common import add_target, calls, in_one_thread, parser, target_of

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.dataset.collect import records_of, search_task
from ansor.dataset.examples import REPEATS
from ansor.dataset.operators import tasks_for
from ansor.measure.interleaved import interleaved
from ansor.measure.record import header_line, load, record_line
from ansor.run.kernels import built
from ansor.run.states import best_of
from ansor.search.tuner import Outcome
from ansor.support.safe_files import write_whole
from ansor.targets.base import Target
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask

SLOWEST = 3.0
"""Programs that took longer than this times the best keep their times: nobody mistakes them for good ones."""

FEWEST_TURNS = REPEATS

WARM = 1e-3
"""Seconds of untimed calls before each turn. Every program has a workspace of its own here, but in a network all share one, which is warm: without such calls,
programs of Winograd's method take 1.2 times as long (medians of 120 layers), direct ones, which need none, 1.04 times."""


def main() -> int:
    options = parser(__doc__)
    options.add_argument("folder", type=Path, help="record files of `ansor dataset collect`")
    options.add_argument("--turns", type=int, default=12, help="turns of each comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    if given.turns < FEWEST_TURNS:
        options.error(f"asked for {given.turns} turns, but each record holds {REPEATS} times; ask for {FEWEST_TURNS} turns or more")
    in_one_thread()
    target = target_of(given)
    tasks = [task for task in tasks_for(target) if records_of(given.folder, task).exists()]
    for number, task in enumerate(tasks, 1):
        said = retimed(search_task(task, target), records_of(given.folder, task), target, given.turns)
        print(f"{number}/{len(tasks)} {task.name}: {said}", flush=True)
    return 0


def retimed(task: SearchTask, path: Path, target: Target, turns: int) -> str:
    """Time the good programs of a file again, and say how many there are, and what part of the fastest one's speed the fastest one of before has."""
    known = [(outcome, record) for outcome, record in recorded_outcomes(task, path).known if outcome.valid]
    if not known:
        return "no valid program"
    best = min(record.cost for _, record in known)
    good = [(outcome, record) for outcome, record in known if record.cost <= SLOWEST * best]
    times = in_turns(task, [outcome for outcome, _ in good], target, turns)
    new = {record: record._replace(costs=seconds) for (_, record), seconds in zip(good, times, strict=True)}
    loaded = load(path)
    write_whole(path, b"".join([*map(header_line, loaded.headers), *(record_line(new.get(record, record)) for record in loaded.records)]))
    first = min(new, key=lambda record: record.cost)
    return f"{len(new)} programs; the best of before has {min(min(one.costs) for one in new.values()) / min(new[first].costs):.2f} of the speed"


def in_turns(task: SearchTask, outcomes: Sequence[Outcome], target: Target, turns: int) -> list[tuple[float, ...]]:
    """The REPEATS least times of each program, in seconds; all run in turns, each as often."""
    kernels = built([task] * len(outcomes), [best_of(task, outcome) for outcome in outcomes], CToolchain(find_compiler(target.compiler)))
    found = interleaved(calls(task, {str(number): kernel for number, kernel in enumerate(kernels)}), turns, warm=WARM)
    return [tuple(sorted(found[str(number)].seconds)[:REPEATS]) for number in range(len(outcomes))]


if __name__ == "__main__":
    sys.exit(main())
