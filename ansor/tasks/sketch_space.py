"""A sketch as the search sees it: `ansor.search.space.Space` over one sketch and one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows
from ansor.schedule.sketch import Rows, Sketch
from ansor.targets.base import Target
from ansor.tasks.recording import RecordedSketch, recorded


class SketchSpace:
    """All programs of one sketch on one target. `algorithm`: the alternative or template that the sketch belongs to, "" for the declaration itself.

    `allowed`: column -> which values of the choice are searched, bool [values]; other columns are unrestricted. Rows mean the same with and without it.
    """

    def __init__(self, sketch: Sketch, target: Target, algorithm: str = "", allowed: Mapping[int, NDArray[np.bool_]] | None = None) -> None:
        self.algorithm = algorithm
        self.allowed = dict(allowed or {})
        self.sketch = sketch
        self.target = target

    def __repr__(self) -> str:
        return f"SketchSpace({self.sketch!r}{f', {self.algorithm}' if self.algorithm else ''})"

    def _repr_html_(self) -> str:
        return self.sketch._repr_html_()

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
        given = self.sketch.choices[column].weights
        allowed = self.allowed.get(column)
        if allowed is None:
            return given
        return allowed.astype(np.float64) if given is None or not (given * allowed).any() else given * allowed

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        """Values one factor away, for tile sizes."""
        near = self.sketch.choices[column].neighbours
        allowed = self.allowed.get(column)
        return near if near is None or allowed is None else np.where((near >= 0) & allowed[near], near, -1)

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each program is allowed and keeps the target's limits."""
        found = self._recorded.legal(rows)
        for column, allowed in self.allowed.items():
            found = found & allowed[rows[:, column]]
        return found

    def holds(self, row: Sequence[int]) -> bool:
        """Whether a row belongs to the sketch: a value for each choice."""
        return len(row) == len(self.sizes) and all(0 <= gene < size for gene, size in zip(row, self.sizes.tolist(), strict=True))

    def allows(self, row: Sequence[int]) -> bool:
        """Whether a row of the sketch is in the space."""
        return all(allowed[row[column]] for column, allowed in self.allowed.items())

    def narrowed(self, allowed: Mapping[int, NDArray[np.bool_]]) -> SketchSpace | None:
        """The space with fewer values, None when a choice has no value left."""
        both = {column: mask & self.allowed.get(column, True) for column, mask in allowed.items()}
        return SketchSpace(self.sketch, self.target, self.algorithm, self.allowed | both) if all(mask.any() for mask in both.values()) else None

    def features(self, rows: Rows) -> FeatureRows:
        """What the cost model sees of these programs."""
        return self._recorded.features(rows)

    @cached_property
    def _recorded(self) -> RecordedSketch:
        return recorded(self.sketch, self.target)
