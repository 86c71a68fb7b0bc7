"""A population over several spaces: one integer matrix per space. Members are numbered space by space."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows, join
from ansor.search.sampling import SampledSpace, contains, distinct
from ansor.search.space import Rows

Keys = Sequence[NDArray[np.uint64]]
"""Sorted keys of rows, per space; for example of those already measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """`blocks[s]` holds the members that belong to space s, `[n_s, columns_s]`; a block may be empty."""

    blocks: tuple[Rows, ...]

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    def counts(self) -> NDArray[np.int64]:
        """Members of each space, `[spaces]`."""
        return np.array([len(block) for block in self.blocks], dtype=np.int64)

    def owners(self) -> NDArray[np.int64]:
        """The space of each member, `[n]`, ascending."""
        return np.repeat(np.arange(len(self.blocks)), self.counts())

    def take(self, members: NDArray[np.int64]) -> "Population":
        """These members (repeats allowed), in the given order within each space."""
        owners = self.owners()[members]
        starts = np.cumsum(self.counts()) - self.counts()
        return Population(tuple(block[members[owners == space] - starts[space]]
                                for space, block in enumerate(self.blocks)))

    def member(self, index: int) -> tuple[int, tuple[int, ...]]:
        """Space and row of one member."""
        space = int(self.owners()[index])
        local = index - int(self.counts()[:space].sum())
        return space, tuple(int(value) for value in self.blocks[space][local])

    def features(self, spaces: Sequence[SampledSpace]) -> FeatureRows:
        """Feature rows of all members in order; ValueError for an empty population."""
        return join([sampled.space.features(block) for sampled, block in zip(spaces, self.blocks, strict=True)
                     if len(block)])

    def distinct(self, spaces: Sequence[SampledSpace], excluded: Keys | None = None) -> "Population":
        """The members without repeats (the first stays) and without rows whose keys are `excluded`."""
        barred = excluded if excluded is not None else [np.zeros(0, np.uint64)] * len(spaces)
        return Population(tuple(distinct(sampled.tables, block, keys)
                                for sampled, block, keys in zip(spaces, self.blocks, barred, strict=True)))

    def legal(self, spaces: Sequence[SampledSpace]) -> "Population":
        """The legal members."""
        return Population(tuple(block[sampled.legal(block)]
                                for sampled, block in zip(spaces, self.blocks, strict=True)))

    def fresh(self, spaces: Sequence[SampledSpace], excluded: Keys) -> NDArray[np.bool_]:
        """Which members' keys are not `excluded`, `[n]`."""
        return np.concatenate([~contains(keys, sampled.tables.keys(block))
                               for sampled, block, keys in zip(spaces, self.blocks, excluded, strict=True)])

    def mapped(self, change: Callable[[int, Rows], Rows]) -> "Population":
        """The population with `change(space, rows)` applied to each block."""
        return Population(tuple(change(space, block) for space, block in enumerate(self.blocks)))


def empty_population(spaces: Sequence[SampledSpace]) -> Population:
    """A population without members."""
    return Population(tuple(np.zeros((0, sampled.tables.columns), np.int64) for sampled in spaces))


def joined(*parts: Population) -> Population:
    """All members, in the order of the parts within each space."""
    return Population(tuple(np.concatenate(blocks) for blocks in zip(*(part.blocks for part in parts), strict=True)))


def allotted(count: int, weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` split over spaces in proportion to `weights`, with remainders drawn at random: `[spaces]`, summing to `count`.

    If all weights are 0, the result is all zeros.
    """
    result = np.zeros(len(weights), np.int64)
    order = rng.permutation(np.flatnonzero(weights > 0))
    if not len(order) or count <= 0:
        return result
    # Systematic drawing in a random order: each space gets its share rounded down or up, and the sum is exact.
    edges = np.cumsum(weights[order])
    floors = np.minimum(np.floor(edges / edges[-1] * count + rng.random()).astype(np.int64), count)
    result[order] = np.diff(floors, prepend=0)
    return result


def sample_population(spaces: Sequence[SampledSpace], count: int, weights: NDArray[np.float64],
                      rng: np.random.Generator, excluded: Keys) -> Population:
    """About `count` distinct legal rows, none `excluded`, split over spaces by `weights`; other spaces make up for what a space lacks."""
    found = empty_population(spaces)
    left = np.array(weights, dtype=np.float64)
    for _ in range(len(spaces) + 1):
        missing = count - len(found)
        if missing <= 0 or left.sum() <= 0:
            break
        quota = allotted(missing, left, rng)
        barred = [np.sort(np.concatenate([keys, sampled.tables.keys(block)]))
                  for sampled, keys, block in zip(spaces, excluded, found.blocks, strict=True)]
        batch = Population(tuple(sampled.sample(int(wanted), rng, keys)
                                 for sampled, wanted, keys in zip(spaces, quota, barred, strict=True)))
        left = np.where(batch.counts() < quota, 0.0, left)
        found = joined(found, batch)
    return found
