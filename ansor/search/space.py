"""The search's view of a sketch: how many values each choice has, which rows are legal, and their features."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows

Rows = NDArray[np.int64]
"""`[n, columns]`: one program per row, one choice per column; a value is an index into the choice's table."""


class Space(Protocol):
    """One sketch with its tables of choices. Each row is a program."""

    @property
    def name(self) -> str:
        """A stable text that names the sketch."""
        ...

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of values of each choice, `[columns]`, each at least 1; `[0]` columns is one program."""
        ...

    def weights(self, column: int) -> NDArray[np.float64] | None:
        """Relative sampling weights of the values of a choice, `[size]`, at least one positive; None = uniform."""
        ...

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        """For each value of a tile choice, the values that differ by moving one factor, `[size, m]`, padded with -1; None = any value."""
        ...

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are programs worth building, `[n]`."""
        ...

    def features(self, rows: Rows) -> FeatureRows:
        """Feature rows of these programs; all spaces of a search have rows of one width."""
        ...
