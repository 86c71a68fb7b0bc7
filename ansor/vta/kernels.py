"""Loops over elements of memories as micro-ops and the two loops of an instruction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ansor.vta.configuration import ITERATION_BITS
from ansor.vta.instructions import Loop, Uop

MOST_ITERATIONS = (1 << ITERATION_BITS) - 1


@dataclass(frozen=True)
class Walk:
    """A loop: how often it runs, and how many elements each time moves the destination, the source and the weight."""

    extent: int
    dst: int
    src: int = 0
    wgt: int = 0

    @property
    def steps(self) -> tuple[int, int, int]:
        """Of all three."""
        return self.dst, self.src, self.wgt


@dataclass(frozen=True, eq=False)
class Kernel:
    """Micro-ops, and the loops of the instruction that runs them."""

    uops: tuple[Uop, ...]
    outer: Loop
    inner: Loop


@lru_cache(maxsize=4096)  # tiles repeat themselves
def kernel_of(start: tuple[int, int, int], walks: tuple[Walk, ...]) -> Kernel:
    """The kernel that visits, from the elements `start` on, what these loops visit, in whatever order. The two longest loops are those of the instruction."""
    loops = sorted(joined(walks), key=lambda walk: walk.extent, reverse=True)
    fitting = [place for place, walk in enumerate(loops) if walk.extent <= MOST_ITERATIONS][:2]
    hardware = [loops[place] for place in fitting]
    # Those that move the destination innermost: a micro-op that writes what the one before it writes waits for it.
    rest = sorted((walk for place, walk in enumerate(loops) if place not in fitting), key=lambda walk: walk.dst != 0)
    places = itertools.product(*(range(walk.extent) for walk in rest))
    uops = tuple(Uop(*(first + sum(at * walk.steps[k] for at, walk in zip(place, rest, strict=True)) for k, first in enumerate(start))) for place in places)
    outer, inner = ([Loop(walk.extent, *walk.steps) for walk in hardware] + [Loop(), Loop()])[:2]
    return Kernel(uops, outer, inner)


def joined(walks: Sequence[Walk]) -> list[Walk]:
    """The same visits with fewer loops: one in the place of two where the inner one ends where the outer one goes on."""
    left = [walk for walk in walks if walk.extent > 1]
    for outer, inner in itertools.permutations(left, 2):
        whole = outer.extent * inner.extent
        if whole <= MOST_ITERATIONS and outer.steps == tuple(inner.extent * step for step in inner.steps):
            rest = [walk for walk in left if walk is not outer and walk is not inner]
            return joined([*rest, Walk(whole, *inner.steps)])
    return left


def count_of(walks: Sequence[Walk]) -> int:
    """Visits."""
    return prod(walk.extent for walk in walks)
