"""How tasks are tuned: frozen values that every entry point shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansor.cost_model.base import CostModel
from ansor.measure.record import Record
from ansor.run.scoring_model import GIVEN
from ansor.run.states import Guess
from ansor.search.task_scheduler import Objective, SchedulerOptions
from ansor.search.tuner import Halves, Outcome, TunerOptions
from ansor.targets.unit import INSTRUCTIONS, Unit
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

ROUND = 16
SMALL_ROUND = 8

First = Callable[[SearchTask, CostModel, Sequence[SketchSpace]], Guess]
"""Picks a program from some spaces of a task."""

Log = Callable[[SearchTask, SketchSpace, Record], bool]

COUNTED = TunerOptions(local_share=Halves(0.3, 0.7))
"""For costs in instructions, which are exact: the best measured programs are the best, so more is tried around them. MobileNet-V1 on a Cortex-M4 needs 1.1 %
fewer instructions after 1344 programs than with the usual shares (three seeds)."""


def usual_search(unit: Unit) -> TunerOptions:
    """The search's own options for costs in a unit."""
    return COUNTED if unit == INSTRUCTIONS else TunerOptions()


@dataclass(frozen=True)
class SearchOptions:
    """How programs are searched for.

    model: the scorer: a model, 'package', or by default this machine's model, or else the package's.
    called: what reports call a model that is given.
    early_stop: end a task after this many trials without a better program.
    first: picks the program that is measured first for a task, before any search; with templates, one program of the rules and one of each template.
    tuner: the search's own options, by default those for the unit of cost; the run sets its `budget` and `early_stop`.
    """

    seed: int = 0
    model: CostModel | str | None = None
    early_stop: int | None = None
    first: First | None = None
    tuner: TunerOptions | None = None
    called: str = GIVEN


@dataclass(frozen=True)
class Rounds:
    """How rounds are allotted. size: most trials per round; objective, scheduling: what rounds of several tasks should minimise, and how; clock: seconds;
    started: when the run began by that clock, by default when its `TuningRun` is made."""

    size: int = ROUND
    objective: Objective | None = None
    scheduling: SchedulerOptions | None = None
    clock: Callable[[], float] = time.monotonic
    started: float | None = None


@dataclass(frozen=True)
class Trials:
    """Earlier measurements, and where trials are stored.

    file: records to continue from and to append to; None stores nothing. known: for each task, outcomes measured elsewhere: the search learns them, but they
    do not count towards the budget. log: receives every trial; those for which it returns True are not written to `file`. targets: texts of those in a
    run of several: records of the others are not reported as left out.
    """

    file: Path | None = None
    known: Sequence[Sequence[Outcome]] = ()
    log: Log | None = None
    targets: Collection[str] = ()
