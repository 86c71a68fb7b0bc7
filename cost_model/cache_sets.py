"""How well touched data spreads over the sets of the first cache.

A tile whose rows are a power of two apart maps to few sets of a cache: 64 rows of two lines, 1 KB apart, use 8 of the 64 sets, and 128 lines do not fit where
96 do, although the whole cache holds 768. Most first caches are indexed by the address within a 4 KB page, so they have 64 sets of 64-byte lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.ir.columns import Row, larger, power_of_two_in, smaller


@dataclass(frozen=True, slots=True)
class FirstCache:
    """Bytes of a line, and of a way: addresses that far apart are in the same set."""

    line_bytes: int = 64
    way_bytes: int = 4096


USUAL = FirstCache()
"""That of most processors."""


def sets_met(strides: Sequence[Row], cache: FirstCache) -> list[Row]:
    """The most different sets that elements along each dimension map to. strides: bytes between neighbours."""
    return [cache.way_bytes / larger(power_of_two_in(stride, cache.way_bytes), cache.line_bytes) for stride in strides]


def room(counts: Sequence[Row], run: Row, lines: Row, met: Sequence[Row], cache: FirstCache) -> Row:
    """Bytes of a cache that `lines` take if they spread unevenly over the sets: as if all sets were as full as the fullest.

    counts: elements touched along each dimension but the last; run: lines touched along the last; met: `sets_met` along those dimensions.
    """
    line_bytes, way_bytes = cache.line_bytes, cache.way_bytes
    sets = float(way_bytes // line_bytes)
    reached = smaller(run, sets)
    for count, most in zip(reversed(counts), reversed(met), strict=True):
        reached = smaller(reached * smaller(count, most), sets)
    return lines * (line_bytes * sets) / larger(smaller(reached, lines), 1.0)
