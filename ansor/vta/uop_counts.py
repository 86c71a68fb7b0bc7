"""Counts the micro-ops and instructions that the loops of a computation take, by the rules of `kernels_of`, for one program and for a population."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ansor.ir.columns import Flag, Int, choose, larger, product, smaller
from ansor.vta.kernels import APART


def uops_of(spatial: Sequence[Int], reduced: Sequence[Int]) -> Int:
    """The most micro-ops of one kernel: those that remain if its instruction runs two of the loops."""
    elements = product((*spatial, *reduced))
    if not reduced:
        return elements // _two_longest(spatial)
    found, enough = elements, product(spatial) >= APART
    for one, other in itertools.combinations((*((extent, 1) for extent in reduced), *((extent, 0) for extent in spatial), (1, 1), (1, 1)), 2):
        written = product(spatial) // ((1 if one[1] else one[0]) * (1 if other[1] else other[0]))
        again = product(reduced) // ((one[0] if one[1] else 1) * (other[0] if other[1] else 1))
        apart: Flag = (written >= APART) | ((again == 1) & enough)
        found = choose(apart, smaller(found, written * again), found)
    for place, extent in enumerate(spatial):
        part = _part(extent)
        others = (*spatial[:place], *spatial[place + 1 :], *reduced)
        longest = _longest(others)
        found = choose(part >= APART, smaller(found, elements // (extent // part * longest)), found)
    return found


def instructions_of(results: Int, elements: Int) -> Int:
    """How many instructions visit all elements: several if there are too few results to write each again within one instruction."""
    return choose((results >= APART) | (results == elements), 1, elements // results)


def _part(extent: Int) -> Int:
    """See `kernels.smallest_part`."""
    part = extent
    for one in (7, 5, 4, 3):
        part = choose(extent % one == 0, one, part)
    return part


def _longest(extents: Sequence[Int]) -> Int:
    found: Int = 1
    for extent in extents:
        found = larger(found, extent)
    return found


def _two_longest(extents: Sequence[Int]) -> Int:
    longest: Int = 1
    second: Int = 1
    for extent in extents:
        second = larger(second, smaller(longest, extent))
        longest = larger(longest, extent)
    return longest * second
