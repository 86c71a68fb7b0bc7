"""A sketch as the search sees it: `ansor.search.space.Space` over one sketch and one target."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.tape_library import Run, runner
from ansor.cost_model.analytic import log_cycles
from ansor.cost_model.annotations import stages_of
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.features import segments, statement_columns
from ansor.ir.columns import Int
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.tape import Recorder, matrix
from ansor.schedule.choice import Choice
from ansor.schedule.legality import legal
from ansor.schedule.lower import lower
from ansor.schedule.sketch import Rows, Sketch
from ansor.targets.base import Target


class SketchSpace:
    """All programs of one sketch on one target; `algorithm`: the alternative it is a sketch of, "" for the declaration itself."""

    def __init__(self, sketch: Sketch, target: Target, algorithm: str = "") -> None:
        self.algorithm = algorithm
        self.sketch = sketch
        self.target = target

    @property
    def name(self) -> str:
        """The steps as JSON text."""
        return self.sketch.name

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of values of each choice, `[columns]`."""
        return self.sketch.sizes

    def weights(self, column: int) -> NDArray[np.float64] | None:
        """Sampling weights of a choice."""
        return self.sketch.choices[column].weights

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        """Values one factor away, for tile sizes."""
        return self.sketch.choices[column].neighbours

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Programs that fit the target's registers and stack."""
        return self._recorded.legal(rows)

    def features(self, rows: Rows) -> FeatureRows:
        """What the cost model sees of these programs."""
        return self._recorded.features(rows)

    @cached_property
    def _recorded(self) -> Recorded:
        return Recorded(self.sketch, self.target)


class Recorded:
    """Lowering, legality and features of a sketch, each recorded when it is first asked for: they are the same arithmetic for every population."""

    def __init__(self, sketch: Sketch, target: Target) -> None:
        self._target = target
        self._recorder = Recorder()
        self._loops = lower(sketch.state, {choice.name: self._columns(k, choice) for k, choice in enumerate(sketch.choices)})

    def _columns(self, gene: int, choice: Choice) -> tuple[Int, ...]:
        return tuple(self._recorder.table(gene, choice.table[:, part]) for part in range(choice.table.shape[1]))

    @cached_property
    def _legal(self) -> Run:
        flag = matrix([legal(self._loops, self._target)], np.bool_)
        return runner(self._recorder.tape(), [flag], self._target.compiler)

    @cached_property
    def _features(self) -> tuple[int, Run]:
        program, stages = statements_of(self._loops, self._target.cache_line_bytes), stages_of(self._loops)
        columns = [statement_columns(statement, program, stages) for statement in program]
        rows = matrix([one.get(column, 0.0) for one in columns for column in range(WIDTH)], np.float32)
        prior = matrix([log_cycles(statement, self._target) for statement in program], np.float64)
        return len(program), runner(self._recorder.tape(), [rows, prior], self._target.compiler)

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each program is, [n]."""
        (flags,) = self._legal(rows)
        return flags[:, 0]

    def features(self, rows: Rows) -> FeatureRows:
        """The feature rows of each program, with their prior."""
        statements, run = self._features
        found, prior = run(rows)
        return FeatureRows(found.reshape(-1, WIDTH), segments(len(rows), statements), len(rows), prior.reshape(-1))
