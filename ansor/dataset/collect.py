"""Collects a data set: measures programs of every task, good and bad, into one record file per task.

Half of the programs of a round are random, and half are the model's best from a short evolution, so that a model learns both what is bad and which good
program is better. A model's errors show up where a search follows it: programs that it ranks first but that are slow. A second folder can therefore hold
the programs that a tuning run measures. Where a task has several algorithms, such a run mostly tries the one that the model prefers, so that a third folder
can hold as many programs of each. Existing files are continued, so that an interrupted run resumes; several runs on one folder take turns with timing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
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
SEARCHES = {"mixed": SEARCH, "tuning": TunerOptions(), "algorithms": TunerOptions()}
"""How to choose programs: half of them at random, or all as in a tuning run, including its first choice; or as in one tuning run for each algorithm of a task,
so that a model learns which algorithm is better where a run would try only the one that it expects to be."""

TIMING = TimingOptions(repeat=5, stopping=Stopping(cut_ratio=30.0, contender_repeats=0))
"""How to time programs. A model also learns from slow ones, so these are not cut short as in a search."""

Done = Callable[[DatasetTask, Sequence[TaskState]], None]
"""Told about a measured task: several states if its algorithms were searched apart."""


def search_task(task: DatasetTask, target: Target) -> SearchTask:
    """The task for a target, under its name in the data set."""
    return SearchTask(tensors=task.declare(), target=target, name=task.name)


def records_of(folder: Path, task: DatasetTask) -> Path:
    """The task's record file."""
    return folder / f"{task.name}.jsonl"


def collect(
    tasks: Sequence[DatasetTask], target: Target, folder: Path, *, trials: int, seconds: float = math.inf, seed: int = 0, search: str = "mixed",
    done: Done = lambda task, states: None,
) -> None:
    """Measure `trials` programs of each task in turn, including those in its file, until `seconds` have passed. `search`: one of SEARCHES; where algorithms are
    searched apart, they share the trials. `done` is called after each task, but not if time ends between its algorithms.

    Ctrl-C propagates, and loses nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    options = SearchOptions(seed, PACKAGE, first=None if search == "mixed" else partial(pick, seed=seed), tuner=SEARCHES[search])
    with Measurer(target, timing=TIMING) as measurer:
        for task in tasks:
            parts, states = _parts(search_task(task, target), search), []
            for part, budget in zip(parts, Budget(trials).split([1] * len(parts)), strict=True):
                left = end - time.monotonic()
                if left <= 0:
                    return
                budget = budget if math.isinf(left) else replace(budget, seconds=left)
                run = TuningRun([part], measurer=measurer, budget=budget, trials=Trials(records_of(folder, task)), search=options)
                states += run.run()
            done(task, states)


def _parts(task: SearchTask, search: str) -> list[SearchTask]:
    """What to search for a task: all of it, or each of its algorithms."""
    if search != "algorithms":
        return [task]
    return [_restricted(task, name) for name in dict.fromkeys(space.algorithm for space in task.spaces)]


def _restricted(task: SearchTask, algorithm: str) -> SearchTask:
    part = copy(task)
    part.spaces = tuple(space for space in task.spaces if space.algorithm == algorithm)
    return part
