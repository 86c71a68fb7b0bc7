"""How tasks are tuned: frozen values that every entry point shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansor.cost_model.base import CostModel
from ansor.measure.record import Record
from ansor.run.states import Guess
from ansor.search.task_scheduler import Objective, SchedulerOptions
from ansor.search.tuner import Outcome, TunerOptions
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

ROUND = 16
SMALL_ROUND = 8

First = Callable[[SearchTask, CostModel, Sequence[SketchSpace]], Guess]
"""Picks a program out of some spaces of a task."""

Log = Callable[[SearchTask, SketchSpace, Record], bool]


@dataclass(frozen=True)
class SearchOptions:
    """How programs are searched for.

    model: what judges: a model, 'package', or by default the model of this machine, or else the package's.
    early_stop: end a task after so many trials without a better program.
    first: gives the program that is measured first of all of a task, before anything is searched for; where templates are searched along, one of the rules
    and one of each template. tuner: the search's own options; its `budget` and `early_stop` are the run's.
    """

    seed: int = 0
    model: CostModel | str | None = None
    early_stop: int | None = None
    first: First | None = None
    tuner: TunerOptions = field(default_factory=TunerOptions)


@dataclass(frozen=True)
class Rounds:
    """How rounds are dealt out. size: trials of one, at most; objective, scheduling: what those of several tasks are to lower, and how; clock: seconds."""

    size: int = ROUND
    objective: Objective | None = None
    scheduling: SchedulerOptions | None = None
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Trials:
    """What was measured before, and where trials are kept.

    file: records to continue from and to append to; None keeps nothing. known: for each task what was measured elsewhere: it is told to the search, and counts
    towards no budget. log: is shown every trial; the ones that it takes (True) are not written to `file`.
    """

    file: Path | None = None
    known: Sequence[Sequence[Outcome]] = ()
    log: Log | None = None
