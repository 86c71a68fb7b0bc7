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
from ansor.ir.loops import Loops
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Rows, Sketch
from ansor.targets.base import Target

WORTHWHILE = 0.6
"""Share of lowered programs whose features must be wanted, for computing those of all to be cheaper than lowering the wanted ones again."""


class SketchSpace:
    """All programs of one sketch on one target; `algorithm`: the alternative it is a sketch of, "" for the declaration itself."""

    def __init__(self, sketch: Sketch, target: Target, algorithm: str = "") -> None:
        self.algorithm = algorithm
        self.sketch = sketch
        self.target = target
        self._lowered: tuple[Rows, Loops] | None = None

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
        loops = self.sketch.lower_rows(rows)
        self._lowered = rows.copy(), loops
        return legal_rows(loops, self.target, len(rows))

    def features(self, rows: Rows) -> FeatureRows:
        """What the cost model sees of these programs. Where most of those last looked at by `legal` are asked for, they are not lowered again."""
        known, loops = self._lowered or (rows[:0], None)
        self._lowered = None
        if loops is None or len(rows) < WORTHWHILE * len(known):
            return self._features(self.sketch.lower_rows(rows), len(rows))
        places = _places(known, rows)
        if places is None:
            return self._features(self.sketch.lower_rows(rows), len(rows))
        return self._features(loops, len(known)).take(places)

    def _features(self, loops: Loops, count: int) -> FeatureRows:
        program = statements_of(loops, count, self.target.cache_line_bytes)
        return replace(feature_rows(program, stages_of(loops), count), prior=log_cycles(program, self.target))


def _places(known: Rows, rows: Rows) -> NDArray[np.int64] | None:
    """Where each of `rows` stands among the known ones; None unless all do."""
    if not len(known) or known.shape[1] != rows.shape[1]:
        return None
    if not known.shape[1]:
        return np.zeros(len(rows), np.int64)
    width = np.dtype((np.void, known.itemsize * known.shape[1]))
    keys, wanted = (np.ascontiguousarray(one).view(width)[:, 0] for one in (known, rows))
    order = np.argsort(keys, kind="stable")
    places = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return places if np.array_equal(known[places], rows) else None
