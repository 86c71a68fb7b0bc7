"""Maps loops over elements of memories to micro-ops and the two loops of an instruction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ansor.vta.configuration import ITERATION_BITS
from ansor.vta.instructions import Loop, Uop

MOST_ITERATIONS = (1 << ITERATION_BITS) - 1
APART = 3
"""The least distance between two micro-ops that write the same element. If they are closer, cores that do not forward sums (HLS) compute wrong results."""


@dataclass(frozen=True)
class StridedLoop:
    """A loop: how often it runs, and by how many elements each iteration moves the destination, the source and the weight."""

    extent: int
    dst: int
    src: int = 0
    wgt: int = 0

    @property
    def steps(self) -> tuple[int, int, int]:
        """The steps of the destination, the source and the weight."""
        return self.dst, self.src, self.wgt


@dataclass(frozen=True, eq=False)
class Kernel:
    """Micro-ops, and the loops of the instruction that runs them."""

    uops: tuple[Uop, ...]
    outer: Loop
    inner: Loop


@lru_cache(maxsize=4096)  # many tiles have the same loops
def kernels_of(start: tuple[int, int, int], walks: tuple[StridedLoop, ...]) -> tuple[Kernel, ...]:
    """Kernels that together visit, from the elements `start` on, what these loops visit, in any order. Each writes an element again only `APART` or more
    micro-ops later.

    There is one kernel, with as few micro-ops as its two loops allow. If fewer than `APART` elements are written several times, there is one for each time.
    """
    order = _order(walks)
    if order is not None:
        return (_kernel(start, *order),)
    again, rest = [walk for walk in walks if not walk.dst], tuple(walk for walk in walks if walk.dst)
    return tuple(kernel for place in _places(again) for kernel in kernels_of(_moved(start, place, again), rest))


def smallest_part(extent: int) -> int:
    """The smallest divisor that is at least `APART`; the extent itself if there is none up to 7."""
    return next((part for part in (3, 4, 5, 7) if extent % part == 0), extent)


def _kernel(start: tuple[int, int, int], hardware: Sequence[StridedLoop], rest: Sequence[StridedLoop]) -> Kernel:
    uops = tuple(Uop(*_moved(start, place, rest)) for place in _places(rest))
    outer, inner = [*([Loop()] * (2 - len(hardware))), *(Loop(walk.extent, *walk.steps) for walk in hardware)]
    return Kernel(uops, outer, inner)


def _places(walks: Sequence[StridedLoop]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(walk.extent) for walk in walks))


def _moved(start: tuple[int, int, int], place: Sequence[int], walks: Sequence[StridedLoop]) -> tuple[int, int, int]:
    dst, src, wgt = (first + sum(at * walk.steps[k] for at, walk in zip(place, walks, strict=True)) for k, first in enumerate(start))
    return dst, src, wgt


@lru_cache(maxsize=4096)
def _order(walks: tuple[StridedLoop, ...]) -> tuple[tuple[StridedLoop, ...], tuple[StridedLoop, ...]] | None:
    """The loops of the instruction and those of the micro-ops, outermost first: the choice with the fewest micro-ops whose writes are far enough apart. None
    if there is no such choice."""
    found = [split for loops in _choices(walks) for split in _splits(loops) if _apart((*split[0], *split[1]))]
    return min(found, key=lambda split: prod(walk.extent for walk in split[1]), default=None)


def _choices(walks: Sequence[StridedLoop]) -> Iterator[list[StridedLoop]]:
    """Sets of loops with the same visits: joined, unchanged, and with a loop that moves the destination split in two."""
    loops = [walk for walk in walks if walk.extent > 1]
    yield joined(loops)
    if all(walk.dst for walk in loops):
        return
    yield loops
    for one in loops:
        part = smallest_part(one.extent)
        if one.dst and part < one.extent:
            halves = [StridedLoop(one.extent // part, *(part * step for step in one.steps)), StridedLoop(part, *one.steps)]
            yield [*(walk for walk in loops if walk is not one), *halves]


def _splits(loops: Sequence[StridedLoop]) -> Iterator[tuple[tuple[StridedLoop, ...], tuple[StridedLoop, ...]]]:
    """Each choice of up to two loops for the instruction; those that move the destination are innermost, the longest of them first."""
    fitting = sorted((walk for walk in loops if walk.extent <= MOST_ITERATIONS), key=lambda walk: -walk.extent)
    for count in (2, 1, 0):
        for chosen in itertools.combinations(fitting, count):
            rest = [walk for walk in loops if not any(walk is one for one in chosen)]
            yield tuple(sorted(chosen, key=lambda walk: walk.dst != 0)), tuple(sorted(rest, key=lambda walk: walk.dst != 0))


def _apart(loops: Sequence[StridedLoop]) -> bool:
    """Whether loops, outermost first, write an element again only `APART` or more micro-ops later."""
    between = 1
    for walk in reversed(loops):
        if not walk.dst:
            return between >= APART
        between *= walk.extent
    return True


def joined(walks: Sequence[StridedLoop]) -> list[StridedLoop]:
    """The same visits with fewer loops: two become one if the outer one continues where the inner one ends."""
    left = [walk for walk in walks if walk.extent > 1]
    for outer, inner in itertools.permutations(left, 2):
        whole = outer.extent * inner.extent
        if whole <= MOST_ITERATIONS and outer.steps == tuple(inner.extent * step for step in inner.steps):
            rest = [walk for walk in left if walk is not outer and walk is not inner]
            return joined([*rest, StridedLoop(whole, *inner.steps)])
    return left
