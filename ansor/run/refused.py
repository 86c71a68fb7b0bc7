"""The errors for a target that can run no program of a task, or whose limits refuse all of them; the latter names the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ansor.errors import MeasureError, ScheduleError
from ansor.ir.loops import Loops
from ansor.support.text import counted
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

SKETCHES, ROWS = 16, 16
"""The most sketches, and programs of each, that are examined for the message."""
ERRORS = 4
"""The number of programs emitted to see whether they all fail with the same error: then the declaration is the cause, and other limits do not help."""


def check_possible(tasks: Sequence[SearchTask]) -> None:
    """Raise MeasureError for the first task that has no program its target's devices can run."""
    for said in filter(None, map(impossible, tasks)):
        raise MeasureError(said)


def impossible(task: SearchTask) -> str:
    """Why no program of a task can be measured; '' if some may be."""
    why = task.target.refusal(task.dag)
    return f"asked to measure programs of {task.name} for {task.target}, but none can run there: {why}" if why else ""


def refusal(task: SearchTask) -> str:
    """The message for a task without any legal program: which limits refuse it, found from random programs."""
    refused, errors, looked_at, rng = Counter[str](), list[str](), 0, np.random.default_rng(0)
    for space in task.spaces[:SKETCHES]:
        for _ in range(ROWS if len(space.sizes) else 1):
            loops = space.sketch.lower_row(tuple(rng.integers(0, space.sizes).tolist()))
            looked_at += 1
            refused.update(broken_limits(loops, task.target))
            if len(errors) < ERRORS:
                errors.append(_error(task, loops))
    same = errors[0] if len(set(errors)) == 1 else ""
    cure = f"all have the same error: {same}" if same else "raise or change these limits, or change the rules or the pins"
    limits = ", ".join(f"{name} ({count})" for name, count in refused.most_common()) or "none"
    return (
        f"asked for programs of {task.name} for {task.target}, which allows no program of its sketches; "
        f"of {counted(looked_at, 'program')} its limits refused {limits}; {cure}"
    )


def broken_limits(loops: Loops, target: Target) -> list[str]:
    """The names of the target's limits that a program breaks."""
    return [limit.name for limit in target.limits if not limit.holds(loops, target)]


def _error(task: SearchTask, loops: Loops) -> str:
    """Why the target cannot emit a program; '' if it can."""
    try:
        task.target.emit(loops, "entry")
    except ScheduleError as error:
        return str(error)
    return ""
