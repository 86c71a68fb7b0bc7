"""Where the time of a network's call goes, by group of operators, and how fast each could be: a roofline from the measured peak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.commands.step_times import CALL_PART
from ansor.explain.explanation import moved_bytes
from ansor.measure.peak import Peak
from ansor.run.states import TaskState

if TYPE_CHECKING:
    from ansor.graph.step_seconds import CallSeconds


@dataclass(frozen=True)
class GroupTime:
    """All uses of a group. seconds: measured in place; flop: operations as declared, None for steps in PyTorch, which are not counted; limit: the least seconds
    that the roofline allows, None if there is none."""

    name: str
    uses: int
    seconds: float
    flop: float | None = None
    limit: float | None = None

    @property
    def rate(self) -> float | None:
        """10^9 operations per second; None if there are none to count."""
        return None if not self.flop else self.flop / self.seconds / 1e9

    @property
    def of_limit(self) -> float | None:
        """The limit over the measured time: 1 at the limit, above 1 if the data came from caches."""
        return None if self.limit is None else self.limit / self.seconds


def group_times(steps: Sequence[str], call: CallSeconds, states: Sequence[TaskState], peak: Peak | None) -> list[GroupTime]:
    """The times of each group, and of inputs and results (`CALL_PART`), slowest first. steps: the names of a call's steps."""
    known = {state.task.name: state for state in states}
    uses: dict[str, list[float]] = defaultdict(list)
    for name, one in zip(steps, call.steps, strict=True):
        uses[name].append(one)
    found = [_group(name, times, known.get(name), peak) for name, times in uses.items()]
    return sorted((*found, GroupTime(CALL_PART, 1, call.rest)), key=lambda one: -one.seconds)


def limit_of(groups: Sequence[GroupTime]) -> float:
    """Seconds of a call if every group ran at its limit. One without a limit, or faster than it because its data were in caches, counts as measured."""
    return sum(one.seconds if one.limit is None else min(one.seconds, one.limit) for one in groups)


def _group(name: str, times: Sequence[float], state: TaskState | None, peak: Peak | None) -> GroupTime:
    count, seconds = len(times), max(sum(times), 1e-9)
    if state is None:
        return GroupTime(name, count, seconds)
    return GroupTime(name, count, seconds, count * state.task.flop, None if peak is None else count * least_seconds(state, peak))


def least_seconds(state: TaskState, peak: Peak) -> float:
    """Seconds of one run at the roofline: the operations of the cheapest algorithm at peak, or moving each array once at memory bandwidth, if longer."""
    task = state.task
    fewest = min(dag.flop for dag in (task.dag, *(one.dag for one in task.alternatives)))
    return max(fewest / (peak.gflops * 1e9), moved_bytes(task.dag) / (peak.gbytes * 1e9))
