"""How the elements that a statement touches of a buffer lie in memory: cache lines, pages, and bytes of the first cache that they take.

All three go through the dimensions from the last one outwards. A loop moves along one dimension, seldom more, so what is inside the innermost of these is
computed once for all boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from ansor.cost_model.cache_sets import FirstCache, reached, room, sets_met
from ansor.ir.columns import Row, ceil, larger, smaller

PAGE_BYTES = 4096
"""Bytes of a page of memory."""


class Covered(Protocol):
    """What is touched along one dimension. covered: the distance from the first element to the last, both included; count: the distinct ones."""

    @property
    def covered(self) -> Row: ...
    @property
    def count(self) -> Row: ...


class Spread:
    """What is touched along the dimensions of a buffer, in memory. strides: of each dimension, in elements.

    Each list has a number for the last dimension, for the last two, and so on. spans: elements from the first to the last; lines, pages: at most that many;
    sets: of the first cache that the lines map to.
    """

    def __init__(self, dimensions: Sequence[Covered], strides: Sequence[Row], element_bytes: int, cache: FirstCache) -> None:
        met = sets_met([stride * element_bytes for stride in strides[:-1]], cache)  # the same for all boundaries
        self._outwards = [*zip(reversed(dimensions), reversed(strides), (1.0, *reversed(met))[: len(strides)], strict=True)]
        self._place = {id(dimension): place for place, (dimension, _, _) in enumerate(self._outwards)}
        self._shares = element_bytes / cache.line_bytes, element_bytes / PAGE_BYTES
        self._cache = cache
        self._spans: list[Row] = []
        self._lines: list[Row] = []
        self._pages: list[Row] = []
        self._sets: list[Row] = []
        self.settle(dimensions)

    def settle(self, changed: Sequence[Covered]) -> None:
        """Take in that these dimensions changed."""
        first = min((self._place[id(dimension)] for dimension in changed), default=len(self._outwards))
        for found in (self._spans, self._lines, self._pages, self._sets):
            del found[first:]
        for dimension, stride, met in islice(self._outwards, first, None):
            if self._spans:
                self._outer(dimension, stride, met)
            else:
                self._last(dimension)

    @property
    def pages(self) -> Row:
        """Pages of each run along the last dimension, times the number of runs, but no more than between the first element and the last."""
        return self._pages[-1] if self._pages else 1.0

    def lines(self, touched: Row) -> Row:
        """Cache lines, likewise, that hold so many touched elements."""
        return larger(smaller(self._lines[-1] if self._lines else 1.0, touched), 1.0)

    def room(self, lines: Row) -> Row:
        """Bytes of the first cache that these lines take."""
        return room(lines, self._sets[-1], self._cache) if self._sets else float(self._cache.line_bytes)

    def _last(self, last: Covered) -> None:
        line, page = (ceil(last.covered * share) for share in self._shares)
        self._spans.append(last.covered)
        self._lines.append(smaller(last.count, line))
        self._pages.append(smaller(last.count, page))
        self._sets.append(smaller(line, float(self._cache.sets)))

    def _outer(self, dimension: Covered, stride: Row, met: Row) -> None:
        """Move outwards, past one more dimension."""
        span = self._spans[-1] + (dimension.covered - 1.0) * stride
        line, page = self._shares
        self._spans.append(span)
        self._lines.append(smaller(self._lines[-1] * dimension.count, ceil(span * line)))
        self._pages.append(smaller(self._pages[-1] * dimension.count, ceil(span * page)))
        self._sets.append(reached(self._sets[-1], dimension.count, met, self._cache))
