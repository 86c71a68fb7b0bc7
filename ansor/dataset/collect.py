"""Collect a data set: measure programs of every task, good ones and others, into one record file for each task.

Half of the programs of a round are drawn at random and half are the model's best of a short evolution, so that a model learns both what is bad and which of
the good ones is better. What a model is wrong about shows where a search follows it: programs that it takes for the best of all, and that are not. So a
further folder can have the programs that a tuning run measures. A file that is there is continued, so a run that was stopped goes on; several runs on one
folder take turns at the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ansor.cost_model.base import PACKAGE
from ansor.dataset.operators import DatasetTask
from ansor.measure.measurer import Measurer
from ansor.measure.timing import Stopping, TimingOptions
from ansor.run.budget import Budget
from ansor.run.options import SearchOptions, Trials
from ansor.run.states import TaskState
from ansor.run.tuning import TuningRun
from ansor.run.zero_tuning import pick
from ansor.search.evolution import EvolutionOptions
from ansor.search.tuner import Halves, TunerOptions
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

SEARCH = TunerOptions(epsilon=0.5, local_share=Halves(0.3, 0.5), evolution=EvolutionOptions(population=512, generations=1))
SEARCHES = {"mixed": SEARCH, "tuning": TunerOptions()}
"""How programs are chosen: half of them at random, or all as a tuning run does, its first choice included."""

TIMING = TimingOptions(repeat=5, stopping=Stopping(cut_ratio=30.0, contender_repeats=0))
"""How all programs are timed: a model learns from slow ones, too, so that these are not cut short as in a search."""


def search_task(task: DatasetTask, target: Target) -> SearchTask:
    """The task for a target, under its name."""
    return SearchTask(tensors=task.declare(), target=target, name=task.name)


def records_of(folder: Path, task: DatasetTask) -> Path:
    """The task's record file."""
    return folder / f"{task.name}.jsonl"


def collect(
    tasks: Sequence[DatasetTask], target: Target, folder: Path, *, trials: int, seconds: float = math.inf, seed: int = 0, search: str = "mixed",
    done: Callable[[DatasetTask, TaskState], None] = lambda task, state: None,
) -> None:
    """Measure `trials` programs of each task in turn, those in its file included, until `seconds` are over; `search`: one of SEARCHES; `done` is told after
    each task.

    Ctrl-C passes through, nothing is lost.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    options = SearchOptions(seed, PACKAGE, first=partial(pick, seed=seed) if search == "tuning" else None, tuner=SEARCHES[search])
    with Measurer(target, timing=TIMING) as measurer:
        for task in tasks:
            left = end - time.monotonic()
            if left <= 0:
                return
            budget = Budget(trials, None if math.isinf(left) else left)
            run = TuningRun([search_task(task, target)], measurer=measurer, budget=budget, trials=Trials(records_of(folder, task)), search=options)
            done(task, run.run()[0])
