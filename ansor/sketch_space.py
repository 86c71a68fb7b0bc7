"""A sketch as the search sees it: `ansor.search.space.Space` over one sketch and one target."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.analytic import log_cycles
from ansor.cost_model.annotations import stages_of
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.features import feature_rows
from ansor.ir.feature_rows import FeatureRows
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Rows, Sketch
from ansor.targets.base import Target


class SketchSpace:
    """All programs of one sketch on one target."""

    def __init__(self, sketch: Sketch, target: Target) -> None:
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
        return legal_rows(self.sketch.lower_rows(rows), self.target, len(rows))

    def features(self, rows: Rows) -> FeatureRows:
        """What the cost model sees of these programs."""
        loops = self.sketch.lower_rows(rows)
        program = statements_of(loops, len(rows), self.target.cache_line_bytes)
        return replace(feature_rows(program, stages_of(loops), len(rows)), prior=log_cycles(program, self.target))
