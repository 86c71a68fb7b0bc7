"""The lines at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.run.pace import Pace
from ansor.run.states import TaskState, origins_of
from ansor.support.text import counted, format_left, format_share
from ansor.targets.unit import SECONDS, common_unit
from ansor.tasks.origins import standing


def last_lines(states: Sequence[TaskState], pace: Pace, scorer: str) -> Iterator[str]:
    """What was measured, the expected gain of continuing, and whose programs are best. scorer: the model that chose programs."""
    measured = pace.trials - sum(state.resumed for state in states)
    again = pace.gain(pace.trials, timed=False)
    more = f"; {counted(pace.trials, 'trial')} more would be expected to save {format_share(again)}" if again else ""
    yield f"{_reached(states)}{counted(measured, 'trial')} in {format_left(pace.elapsed)}, chosen by {scorer}{more}"
    for state in states:
        origins = origins_of(state.task)
        if len(origins) > 1:
            yield f"{state.task.name}: {standing({name: state.by_origin.get(name) for name in origins}, state.unit)}"


def _reached(states: Sequence[TaskState]) -> str:
    """The best cost of one task; for several tasks, the sum and what it covers."""
    known = [state for state in states if state.best is not None]
    if not known:
        return "no valid program: "
    if len(states) == 1:
        return f"{known[0].task.name}: {known[0].unit.text(known[0].cost or 0.0)}, "
    total = sum(state.weight * (state.cost or 0.0) for state in known)
    unit = common_unit(state.unit for state in known)
    alone = ", each alone with warm caches" if unit == SECONDS else ""
    return f"{counted(len(known), 'kernel')}: {unit.text(total)} in total{alone}; "
