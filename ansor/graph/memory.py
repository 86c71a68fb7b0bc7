"""Plans memory: the arrays of a network share one block, the arena, each at a fixed offset.

Two arrays may share bytes if no step needs both. The plan is greedy: largest first, each in the smallest gap that is free throughout its lifetime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes that are in use from step `first`, which writes them, to step `last`, the last that reads them, both included."""

    name: str
    size: int
    first: int
    last: int

    def overlaps(self, other: Buffer) -> bool:
        """True if some step needs both."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Plan:
    """`offsets`: where each buffer begins, in bytes, a multiple of the alignment; `size`: bytes of the arena."""

    offsets: Mapping[str, int]
    size: int


def planned(buffers: Iterable[Buffer], alignment: int = ALIGNMENT) -> Plan:
    """Offsets for all buffers such that buffers alive at the same time do not overlap."""
    return placed(sorted(buffers, key=lambda one: (-one.size, one.first, one.name)), alignment)


def placed(buffers: Iterable[Buffer], alignment: int = ALIGNMENT) -> Plan:
    """The same, but the buffers are placed in the order given."""
    done: list[tuple[int, int, Buffer]] = []  # begin, end, buffer
    for buffer in buffers:
        taken = sorted((begin, end) for begin, end, other in done if buffer.overlaps(other))
        begin = _best_gap(taken, aligned(buffer.size, alignment))
        done.append((begin, begin + aligned(buffer.size, alignment), buffer))
    return Plan({buffer.name: begin for begin, _, buffer in done}, max((end for _, end, _ in done), default=0))


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """The least multiple of `alignment` that is at least `size`."""
    return -(-size // alignment) * alignment


def _best_gap(taken: list[tuple[int, int]], size: int) -> int:
    """The offset of the smallest gap that holds `size` bytes; the end of the last buffer if there is none."""
    end_so_far = 0
    best: tuple[int, int] | None = None  # gap, begin
    for begin, end in taken:
        gap = begin - end_so_far
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, end_so_far)
        end_so_far = max(end_so_far, end)
    return best[1] if best is not None else end_so_far
