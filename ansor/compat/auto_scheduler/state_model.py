"""Uses a model of states as the search's cost model: feature rows hold a program's genes, which become a state when the program is scored."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.compat.auto_scheduler.cost_models import PythonBasedModel
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.export import state_of
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput
from ansor.compat.auto_scheduler.measuring import failed, measured
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.errors import CostModelError, ScheduleError
from ansor.ir.feature_rows import FeatureRows
from ansor.schedule.sketch import Sketch
from ansor.tasks import task as tasks
from ansor.tasks.sketch_space import SketchSpace


class GeneSpace(SketchSpace):
    """A space whose feature rows hold its number and the program's row."""

    def __init__(self, space: SketchSpace, number: int, width: int) -> None:
        super().__init__(space.sketch, space.target, space.algorithm)
        self._space, self._number, self._width = space, number, width

    def legal(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether programs fit the target's registers and stack."""
        return self._space.legal(rows)

    def features(self, rows: NDArray[np.int64]) -> FeatureRows:
        """One feature row for each program."""
        found = np.zeros((len(rows), self._width), np.float32)
        found[:, 0], found[:, 1 : 1 + rows.shape[1]] = self._number, rows
        return FeatureRows(found, np.arange(len(rows)), len(rows))


@dataclass(frozen=True)
class _Program:
    """The content of a feature row: a task's number, and a state, or None if TVM's steps cannot express it."""

    task: int
    state: State | None


class StateModel:
    """A `CostModel` that calls a model of states. `locals`: the tasks to search, without the spaces that TVM's steps cannot express."""

    def __init__(self, model: PythonBasedModel, given: Sequence[DeclaredTask], local: Sequence[tasks.SearchTask]) -> None:
        self._model = model
        self._tasks = list(given)
        self._spaces: list[tuple[int, SketchSpace]] = []
        self._known: dict[tuple[int, ...], _Program] = {}
        self.locals = []
        told = [[space for space in one.spaces if _has_steps(task, space)] for task, one in zip(given, local, strict=True)]
        width = 1 + max((len(space.sizes) for spaces in told for space in spaces), default=0)
        for number, (one, spaces) in enumerate(zip(local, told, strict=True)):
            changed = copy.copy(one)
            vars(changed)["spaces"] = tuple(GeneSpace(space, len(self._spaces) + k, width) for k, space in enumerate(spaces))
            self._spaces += [(number, space) for space in spaces]
            self.locals.append(changed)

    @property
    def fitted(self) -> bool:
        """Always true: a given model is used from the start."""
        return True

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """Scores from the model's `predict`, task by task."""
        programs = self._programs(features)
        scores = np.full(len(programs), -np.inf)
        for number, task in enumerate(self._tasks):
            places = [(k, one.state) for k, one in enumerate(programs) if one.task == number and one.state is not None]
            if places:
                given = np.asarray(self._model.predict(task, [state for _, state in places]), dtype=np.float64)
                if given.shape != (len(places),):
                    raise CostModelError(f"asked a cost model to score {len(places)} states; found scores of shape {given.shape}: return one score for each")
                scores[[k for k, _ in places]] = given
        return scores

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """Call the model's `update`."""
        pairs = [(one, float(cost)) for one, cost in zip(self._programs(features), seconds, strict=True) if one.state is not None]
        inputs = [MeasureInput(self._tasks[one.task], one.state) for one, _ in pairs if one.state is not None]
        results = [measured([cost], None, cost) if np.isfinite(cost) else failed(MeasureErrorNo.UNKNOWN_ERROR, "it failed", 0.0) for _, cost in pairs]
        self._model.update(inputs, results)

    def save(self, path: Path) -> None:
        """Not possible. Raises CostModelError."""
        raise CostModelError(f"asked to save a cost model of states to {path}, which has no file format; save it with its own methods")

    def _programs(self, features: FeatureRows) -> list[_Program]:
        return [self._program(tuple(row)) for row in features.rows.astype(np.int64).tolist()]

    def _program(self, genes: tuple[int, ...]) -> _Program:
        if genes not in self._known:
            number, space = self._spaces[genes[0]]
            self._known[genes] = _Program(number, _state(self._tasks[number], space, genes[1 : 1 + len(space.sizes)]))
        return self._known[genes]


def _has_steps(task: DeclaredTask, space: SketchSpace) -> bool:
    try:
        state_of(task.compute_dag, Sketch(task.compute_dag.dag, space.sketch.steps))
    except ScheduleError:
        return False
    return not space.algorithm


def _state(task: DeclaredTask, space: SketchSpace, row: Sequence[int]) -> State | None:
    try:
        return state_of(task.compute_dag, Sketch(task.compute_dag.dag, space.sketch.concrete_steps(row)))
    except ScheduleError:
        return None
