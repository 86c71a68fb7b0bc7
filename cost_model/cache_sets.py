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


def sets_met(strides: Sequence[Row], cache: FirstCache) -> list[Row]:
    """How many different sets neighbours reach along each dimension, at most. strides: bytes between neighbours."""
    return [cache.way_bytes / larger(power_of_two_in(stride, cache.way_bytes), cache.line_bytes) for stride in strides]


def room(counts: Sequence[Row], run: Row, lines: Row, met: Sequence[Row], cache: FirstCache) -> Row:
    """Bytes of a cache that `lines` take when some sets get more of them than others: as much as the fullest set would need of all.

    counts: elements touched of each dimension but the last; run: bytes touched of the last one; met: `sets_met` along those dimensions.
    """
    line_bytes, way_bytes = cache.line_bytes, cache.way_bytes
    sets = float(way_bytes // line_bytes)
    reached = smaller(ceil(run / line_bytes), sets)
    for count, most in zip(reversed(counts), reversed(met), strict=True):
        reached = smaller(reached * smaller(count, most), sets)
    return lines * line_bytes * sets / larger(smaller(reached, lines), 1.0)
