"""Draws distinct legal rows of a space with a bounded number of attempts; small spaces are enumerated instead.

`SampledSpace` is the search's view of a `Space`: its tables, and the exact list of its programs if it is small.
"""

import numpy as np
from numpy.typing import NDArray

from ansor.search.mutation import redraw
from ansor.search.space import Rows, Space
from ansor.search.tables import ChoiceTables, all_rows, choice_tables

ENUMERATED = 1 << 14
"""Spaces of up to this many rows are listed in full, so that "exhausted" is exact and no draw is wasted."""

ATTEMPTS = 8
"""The most batches drawn before a sampler returns fewer rows than asked."""


class SampledSpace:
    """A space with its tables read and, if it has at most ENUMERATED rows, the list of its legal ones."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.tables: ChoiceTables = choice_tables(space)
        self.listed: Rows | None = None
        if self.tables.programs <= ENUMERATED:
            rows = all_rows(self.tables.sizes)
            self.listed = rows[self.legal(rows)]
            self._listed_keys = np.sort(self.tables.keys(self.listed))

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are legal, `[n]`; looked up if all legal rows are listed."""
        if not len(rows):
            return np.zeros(0, bool)
        if self.listed is not None:
            return contains(self._listed_keys, self.tables.keys(rows))
        return np.asarray(self.space.legal(rows), dtype=bool)

    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """`count` rows by the sampling weights, legal or not, possibly with repeats."""
        columns = np.tile(np.arange(self.tables.columns), count)
        return redraw(self.tables, columns, rng).reshape(count, self.tables.columns)

    def sample(self, count: int, rng: np.random.Generator, excluded: NDArray[np.uint64] | None = None,
               attempts: int = ATTEMPTS) -> Rows:
        """Up to `count` distinct legal rows whose keys are not `excluded` (sorted), in random order.

        Returns fewer when the space has no more, or when `attempts` batches did not find more.
        """
        barred = np.zeros(0, np.uint64) if excluded is None else excluded
        if self.listed is not None:
            left = np.flatnonzero(~contains(barred, self.tables.keys(self.listed)))
            return self.listed[self._weighted_order(left, rng)[:count]]
        found = np.zeros((0, self.tables.columns), np.int64)
        for attempt in range(attempts):
            missing = count - len(found)
            if missing <= 0:
                break
            batch = self.draw(max(missing + missing // 2, 64) << min(attempt, 4), rng)
            batch = distinct(self.tables, np.concatenate([found, batch]), barred)[len(found):]
            found = np.concatenate([found, batch[self.legal(batch)][:missing]])
        return found

    def _weighted_order(self, index: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """These listed rows in weighted random order (exponential race), with weightless ones last."""
        assert self.listed is not None
        chance = np.zeros(len(index))
        with np.errstate(divide="ignore"):
            for column in np.flatnonzero(self.tables.weighted):
                start, size = self.tables.offsets[column], self.tables.sizes[column]
                share = np.diff(self.tables.cumulative[start:start + size] - column, prepend=0.0)
                chance += np.log(share[self.listed[index, column]])
            race = np.log(rng.standard_exponential(len(index))) - chance
        return index[np.argsort(race, kind="stable")]


def contains(ordered: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which keys are in the sorted array `ordered`, `[n]`."""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.equal(ordered[place], keys)


def distinct(tables: ChoiceTables, rows: Rows, excluded: NDArray[np.uint64]) -> Rows:
    """The first of each group of equal rows, in order, without rows whose keys are `excluded` (sorted).

    The rows of a leading block that is already distinct and not excluded keep their places.
    """
    keys = tables.keys(rows)
    _, first = np.unique(keys, return_index=True)
    first.sort()
    return rows[first[~contains(excluded, keys[first])]]
