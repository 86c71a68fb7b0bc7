"""Collects a data set: measures programs of every task, good and bad, into one record file per task.

Half of the programs of a round are random, and half are the model's best from a short evolution, so that a model learns both what is bad and which good
program is better. A model's errors show up where a search follows it: programs that it ranks first but that are slow. A second folder can therefore hold
the programs that a tuning run measures. Existing files are continued, so that an interrupted run resumes; several runs on one folder take turns with
timing.
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
"""How to choose programs: half of them at random, or all as in a tuning run, including its first choice."""

TIMING = TimingOptions(repeat=5, stopping=Stopping(cut_ratio=30.0, contender_repeats=0))
"""How to time programs. A model also learns from slow ones, so these are not cut short as in a search."""


def search_task(task: DatasetTask, target: Target) -> SearchTask:
    """The task for a target, under its name in the data set."""
    return SearchTask(tensors=task.declare(), target=target, name=task.name)


def records_of(folder: Path, task: DatasetTask) -> Path:
    """The task's record file."""
    return folder / f"{task.name}.jsonl"


def collect(
    tasks: Sequence[DatasetTask], target: Target, folder: Path, *, trials: int, seconds: float = math.inf, seed: int = 0, search: str = "mixed",
    done: Callable[[DatasetTask, TaskState], None] = lambda task, state: None,
) -> None:
    """Measure `trials` programs of each task in turn, including those in its file, until `seconds` have passed. `search`: one of SEARCHES; `done` is called
    after each task.

    Ctrl-C propagates, and loses nothing.
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
