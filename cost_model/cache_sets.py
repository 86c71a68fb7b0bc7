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

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return self.way_bytes // self.line_bytes


USUAL = FirstCache()
"""That of most processors."""


def sets_met(strides: Sequence[Row], cache: FirstCache) -> list[Row]:
    """The most different sets that elements along each dimension map to. strides: bytes between neighbours."""
    return [cache.way_bytes / larger(power_of_two_in(stride, cache.way_bytes), cache.line_bytes) for stride in strides]


def reached(inner: Row, count: Row, met: Row, cache: FirstCache) -> Row:
    """The sets that lines map to. inner: those of one of them along a dimension; count: how many there are; met: its `sets_met`."""
    return smaller(inner * smaller(count, met), float(cache.sets))


def room(lines: Row, reached: Row, cache: FirstCache) -> Row:
    """Bytes of a cache that `lines` take if they spread unevenly over the sets: as if all sets were as full as the fullest of the `reached` ones."""
    return lines * (cache.line_bytes * float(cache.sets)) / larger(smaller(reached, lines), 1.0)
