"""What a run says when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.run.pace import Pace
from ansor.run.states import TaskState, origins_of
from ansor.support.text import counted, format_left, format_seconds, format_share
from ansor.tasks.origins import standing


def last_lines(states: Sequence[TaskState], pace: Pace) -> Iterator[str]:
    """How much there was, what going on would be expected to bring, and whose programs are the best."""
    measured = pace.trials - sum(state.resumed for state in states)
    again = pace.gain(pace.trials, timed=False)
    more = f"; {counted(pace.trials, 'trial')} more would be expected to save {format_share(again)}" if again else ""
    yield f"{_reached(states)}{counted(measured, 'trial')} in {format_left(pace.elapsed)}{more}"
    for state in states:
        origins = origins_of(state.task)
        if len(origins) > 1:
            yield f"{state.task.name}: {standing({name: state.by_origin.get(name) for name in origins})}"


def _reached(states: Sequence[TaskState]) -> str:
    """The best of one task; of several the sum, and of what."""
    known = [state for state in states if state.best is not None]
    if not known:
        return "no valid program: "
    if len(states) == 1:
        return f"{known[0].task.name}: {format_seconds(known[0].seconds or 0.0)}, "
    total = sum(state.weight * (state.seconds or 0.0) for state in known)
    return f"{counted(len(known), 'kernel')}: {format_seconds(total)} in total, each alone with warm caches; "
