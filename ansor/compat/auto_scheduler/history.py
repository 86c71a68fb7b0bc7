"""Reads measured programs of a task from a log, as states or as rows of our search. Source: TVM 0.9, `auto_scheduler.measure_record`."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from ansor.compat.auto_scheduler.callbacks import own_file
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption, MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.record import Pairs, RecordReader, costs_of
from ansor.compat.auto_scheduler.workload_key import decode_workload_key
from ansor.errors import RecordError, ScheduleError
from ansor.run.states import Best, best_of_recorded
from ansor.schedule.matching import found_among
from ansor.schedule.sketch import Sketch
from ansor.search.tuner import Outcome, Pick
from ansor.support.notices import log, warn
from ansor.tasks import task as tasks
from ansor.tasks.recorded import RecordedTrials, recorded_outcomes, say_left_out

_logger = logging.getLogger("auto_scheduler")


@dataclass(frozen=True)
class BestProgram:
    """The best program of a task: a state from a log, or a schedule from an ansor record file. `cost`: seconds, scaled if measured at another size."""

    task: DeclaredTask
    cost: float
    state: State | None = None
    best: Best | None = None

    def schedule(self, layout_rewrite_option: LayoutRewriteOption | None = None) -> Sketch:
        """The program as a schedule."""
        if self.best is not None:
            return Sketch(self.best.sketch.dag, self.best.sketch.concrete_steps(self.best.row))
        assert self.state is not None
        option = self.task.layout_rewrite_option if layout_rewrite_option is None else layout_rewrite_option
        return self.task.compute_dag.apply_steps_from_state(self.state, option)[0]

    @cached_property
    def text(self) -> str:
        """The steps as Python for a state, otherwise our steps."""
        if self.state is not None:
            return self.task.compute_dag.print_python_code_from_state(self.state)
        return f"{self.schedule()}\n"


def pairs_of(records: str | Path | Pairs, n_lines: int | None = None) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The first `n_lines` records of a log, or of the given pairs."""
    pairs = RecordReader(records) if isinstance(records, str | Path) else records
    return islice(iter(pairs), n_lines)


def best_of(task: DeclaredTask, log: str | Path | Pairs, include_compatible: bool = False) -> BestProgram:
    """The best program of a task in a log and in the ansor record file next to it. Raises RecordError if there is none.

    Skips programs that do not fit the declaration or that no processor can run, with a warning.
    """
    found = best_of_ours(task, own_file(log)) if isinstance(log, str | Path) else None
    lines = [] if isinstance(log, str | Path) and found is not None and not Path(log).exists() else pairs_of(log)
    for inp, _, cost in sorted(costs_of(lines, task.workload_key, task.target, include_compatible), key=lambda one: one[2]):
        if found is not None and found.cost <= cost:
            break
        try:
            state = task.compute_dag.state_of(inp.state)
            task.compute_dag.replay(state)
        except ScheduleError as error:
            _logger.warning("a program of %s is left out: %s", task.workload_key, error)
            continue
        return BestProgram(task, cost, state)
    if found is None:
        name = log if isinstance(log, str | Path) else "the log"
        raise RecordError(f"asked for the best program of {task!r}, but {name} has none that runs; tune the task first")
    return found


def best_of_ours(task: DeclaredTask, path: Path) -> BestProgram | None:
    """The best program of a task in an ansor record file; None if there is none."""
    best = best_of_recorded(task.local, recorded(task.local, path))
    return None if best is None else BestProgram(task, best.cost, best=best)


def recorded(local: tasks.SearchTask, path: Path) -> RecordedTrials:
    """A task's trials in an ansor record file, none if the file is missing. Warns about skipped records."""
    if not path.exists():
        return RecordedTrials([], {})
    found = recorded_outcomes(local, path)
    say_left_out([found.left_out], path, log.info, warn)
    return found


@dataclass(frozen=True)
class Rows:
    """Programs of a log as rows of our search, and the number of skipped programs by reason."""

    outcomes: tuple[Outcome, ...]
    left_out: dict[str, int]


NO_ROW = "they are not programs of this search"
OTHER_TASK = "they are of other workloads or targets"


def rows_of(task: DeclaredTask, pairs: Pairs, local: tasks.SearchTask | None = None) -> Rows:
    """The programs of a task in a log, failures included, as outcomes for the search of `local`. Costs stay as logged, whichever machine they come from."""
    wanted, outcomes, left_out = decode_workload_key(task.workload_key), [], Counter[str]()
    sketches = [space.sketch for space in (local or task.local).spaces]
    for inp, result in pairs:
        if inp.task.target_kind != task.target_kind or decode_workload_key(inp.task.workload_key) != wanted:
            left_out[OTHER_TASK] += 1
            continue
        try:
            row = found_among(task.compute_dag.replay(inp.state).sketch, sketches)
        except ScheduleError as error:
            left_out[str(error)] += 1
            continue
        if row is None:
            left_out[NO_ROW] += 1
        else:
            cost = result.mean_cost
            outcomes.append(Outcome(Pick(*row), cost if math.isfinite(cost) else None, None if math.isfinite(cost) else str(int(result.error_no))))
    return Rows(tuple(outcomes), dict(left_out))
