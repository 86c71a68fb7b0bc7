"""How much of a network its records cover: where each task's program comes from, its share of the time, and which records nearly fit.

The time of a task without a valid record is estimated from the estimated cycles of its program, at the rate of the measured tasks. If nothing was measured,
shares are shares of the estimated cycles.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansor.measure.record import Loaded, load
from ansor.run.choosing import chosen, is_tunable, recorded_states
from ansor.run.states import Best, TaskState
from ansor.targets.base import Target
from ansor.targets.unit import Unit
from ansor.tasks.neighbours import neighbours_of
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

TUNED, PICKED, PLAIN = "tuned", "picked", "no reduction"
"""Where a program comes from: the records, or the model. Tasks without a reduction are also picked; tuning a network skips them."""

SHAPE = "another shape"
"""The reason why records of a neighbour do not count."""

NEAREST = 3
"""The most neighbours that are named for a task."""


@dataclass(frozen=True)
class UnusedRecords:
    """Records that do not count for a task, and why not. name: the name of their workload."""

    name: str
    trials: int
    why: str


@dataclass(frozen=True)
class Covered:
    """A task of a network: how its program was found, its measured cost (None: not measured), and its share of the estimated time of a call.

    uses: uses per call; trials: recorded trials, valid or not.
    """

    name: str
    workload: str
    uses: float
    program: str
    trials: int
    cost: float | None
    share: float
    near: tuple[UnusedRecords, ...]


@dataclass(frozen=True)
class Coverage:
    """All tasks of a network, by descending share of the time. unit: the unit of their costs."""

    target: Target
    tasks: tuple[Covered, ...]
    unit: Unit

    def share(self, program: str) -> float:
        """The share of the estimated time of tasks whose program comes from there."""
        return sum((one.share for one in self.tasks if one.program == program), start=0.0)

    def count(self, program: str) -> int:
        """The number of tasks whose program comes from there."""
        return sum(one.program == program for one in self.tasks)


def coverage(tasks: Iterable[tuple[SearchTask, float]], records: str | Path) -> Coverage:
    """What a record file covers of tasks and their uses. Nothing is measured or built. Raises RecordError when the file cannot be read."""
    loaded = load(records)
    states = list(recorded_states(list(tasks), records).values())
    trials = [sum(record.workload in state.task.workload_keys for record in loaded.records) - sum(state.left_out.values()) for state in states]
    costs = _estimated(states)
    total = sum(costs) or 1.0
    found = [_covered(state, count, cost / total, loaded) for state, count, cost in zip(states, trials, costs, strict=True)]
    units = [state.unit for state in states if state.best is not None] or [state.unit for state in states]
    return Coverage(states[0].task.target, tuple(sorted(found, key=lambda one: -one.share)), units[0])


def _covered(state: TaskState, trials: int, share: float, loaded: Loaded) -> Covered:
    task, tunable = state.task, is_tunable(state.task)
    near = [UnusedRecords(task.name, count, why) for why, count in state.left_out.items()]
    if tunable and state.best is None:
        near += [UnusedRecords(one.name, one.trials, SHAPE) for one in neighbours_of(task, loaded.records, loaded.names)[:NEAREST]]
    program = TUNED if state.best is not None else PICKED if tunable else PLAIN
    return Covered(task.name, task.workload_key, state.weight, program, trials, state.cost, share, tuple(near))


def _estimated(states: Sequence[TaskState]) -> list[float]:
    """The cost of all uses of each task: measured, or estimated at the rate of the measured tasks."""
    cycles = [_cycles(state.task, chosen(state)) for state in states]
    rates = [state.cost / one for state, one in zip(states, cycles, strict=True) if state.cost is not None]
    rate = statistics.median(rates) if rates else 1.0
    return [state.weight * (rate * one if state.cost is None else state.cost) for state, one in zip(states, cycles, strict=True)]


def _cycles(task: SearchTask, program: Best) -> float:
    """The estimated cycles of a program."""
    features = SketchSpace(program.sketch, task.target).features(np.asarray([program.row], np.int64).reshape(1, -1))
    return float(features.sums(np.exp(features.prior_logs()))[0])
