"""`ansor dataset collect`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ansor.commands.common import make_console, target_of
from ansor.dataset.collect import collect
from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.text import format_seconds
from ansor.tuning import TaskState


def run_dataset(given: argparse.Namespace) -> int:
    """What was asked for of a data set."""
    return _collect(given)


def _collect(given: argparse.Namespace) -> int:
    console = make_console()
    part, parts = given.part
    tasks = dataset_tasks()[part - 1 :: parts]
    tasks = [task for task in tasks if not given.only or task.kind in given.only]
    target = target_of(given)
    console.print(f"{len(tasks)} tasks, {given.trials} programs each, for {target}; records in {given.folder}", soft_wrap=True)
    begun = time.monotonic()
    count = 0

    def done(task: DatasetTask, state: TaskState) -> None:
        nonlocal count
        count += 1
        best = "none valid" if state.seconds is None else f"best {format_seconds(state.seconds)}"
        elapsed = time.monotonic() - begun
        console.print(f"{count}/{len(tasks)} {task.name}: {state.trials} programs, {best}; {elapsed / 60:.1f} min", soft_wrap=True)

    collect(tasks, target, Path(given.folder), trials=given.trials, seed=given.seed, done=done)
    return 0
