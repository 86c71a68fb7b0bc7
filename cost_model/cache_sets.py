"""How well what is touched spreads over the sets of the first cache.

A tile whose rows lie a power of two apart meets few sets of a cache: 64 rows of two lines, 1 KB apart, use 8 of the 64 sets, and 128 lines do not stay where
96 have room, although the whole cache holds 768. Most first caches are indexed by the address within a page of 4 KB, so they have 64 sets of 64-byte lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.ir.columns import Row, ceil, larger, power_of_two_in, smaller


@dataclass(frozen=True, slots=True)
class FirstCache:
    """Bytes of a line, and of a way: places that far apart are in the same set."""

    line_bytes: int = 64
    way_bytes: int = 4096


USUAL = FirstCache()
"""Of most processors."""


def room(counts: Sequence[Row], run: Row, lines: Row, strides: Sequence[Row], cache: FirstCache) -> Row:
    """Bytes of a cache that `lines` take when some sets get more of them than others: as much as the fullest set would need of all.

    counts: elements touched of each dimension but the last; run: bytes touched of the last one; strides: bytes between neighbours of those dimensions.
    """
    line_bytes, way_bytes = cache.line_bytes, cache.way_bytes
    sets = float(way_bytes // line_bytes)
    reached = smaller(ceil(run / line_bytes), sets)
    for count, stride in zip(reversed(counts), reversed(strides), strict=True):
        apart = larger(power_of_two_in(stride, way_bytes), line_bytes)  # every so many bytes of a page are met
        places = smaller(count, way_bytes / apart)
        reached = smaller(reached * places, sets)
    return lines * line_bytes * sets / larger(smaller(reached, lines), 1.0)
