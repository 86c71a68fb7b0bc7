"""Evolution over an integer matrix: score, keep the best new programs, select, cross over, mutate, filter, and repeat.

Everything but `legal`, `features` and the model's `predict` is array arithmetic over the whole population. These lower programs, and lowering a
few costs nearly as much as lowering a hundred. So each generation calls them once per space, and leaves out spaces with only a few members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows, join
from ansor.search.crossover import crossover
from ansor.search.mutation import mutate
from ansor.search.population import Keys, Population, allotted, empty_population, joined, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.space import Rows

Score = Callable[[FeatureRows], NDArray[np.float64]]

BLOCKS = 16
"""Spaces with less than 1 / BLOCKS of the offspring are drawn in blocks: fewer spaces get more members each, with the same probability."""

USABLE = 0.8
"""The assumed share of candidates that are legal and new, before the first generation."""

MOST_SURPLUS = 4.0
"""The most candidates bred per wanted one, to make up for illegal and repeated ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationShares:
    """Shares of the population: the best, kept unchanged; new samples; and the top of the ranking, from which most parents come."""

    elites: float = 0.1
    fresh: float = 0.1
    selection: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionOptions:
    """`mutation`, `crossover`: shares of the population. `survivors`: how it is renewed."""

    population: int = 2048
    generations: int = 4
    mutation: float = 0.85
    crossover: float = 0.3
    extra_moves: float = 0.5
    jump: float = 0.1
    survivors: PopulationShares = PopulationShares()


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Members and their finite scores, `[n]`, aligned."""

    members: Population
    scores: NDArray[np.float64]

    def take(self, index: NDArray[np.int64]) -> Ranked:
        """These members; `index` ascending, so that scores stay aligned."""
        return Ranked(self.members.take(index), self.scores[index])


@dataclass(frozen=True, slots=True, eq=False)
class HallOfFame:
    """The best programs found, with their feature rows."""

    ranked: Ranked
    features: FeatureRows

    @property
    def members(self) -> Population:
        """The programs."""
        return self.ranked.members

    @property
    def scores(self) -> NDArray[np.float64]:
        """Their scores, `[n]`."""
        return self.ranked.scores

    def take(self, index: NDArray[np.int64]) -> HallOfFame:
        """These members; `index` ascending."""
        return HallOfFame(self.ranked.take(index), self.features.take(index))


@dataclass(frozen=True, eq=False)
class SearchGoal:
    """What an evolution looks for.

    wanted: the number of best programs to find. excluded: per space, keys of programs that do not count. weights: sampling weights of the spaces. anchors:
    the best measured programs; mutations of them make up `local_share` of each generation.
    """

    wanted: int
    excluded: Keys
    weights: NDArray[np.float64]
    anchors: Population
    local_share: float = 0.0

    @staticmethod
    def anywhere(spaces: Sequence[SampledSpace], wanted: int) -> SearchGoal:
        """A search without measurements, with equal weight on all spaces."""
        return SearchGoal(wanted, [np.zeros(0, np.uint64)] * len(spaces), np.ones(len(spaces)), empty_population(spaces))


def evolve(
    spaces: Sequence[SampledSpace], score: Score, start: Population, goal: SearchGoal, rng: np.random.Generator, options: EvolutionOptions
) -> HallOfFame:
    """The best distinct programs found: the best `goal.wanted` overall, and the best of each space.

    Deterministic for the state of `rng`. The result may be smaller than wanted if the spaces are small.
    """
    hall = HallOfFame(Ranked(empty_population(spaces), np.zeros(0)), FeatureRows(np.zeros((0, 0), np.float32), np.zeros(0, np.int64), 0))
    elites, newcomers, usable = hall.ranked, start, USABLE
    for generation in range(options.generations + 1):
        if not len(newcomers):
            break
        features = newcomers.features(spaces)
        scored = Ranked(newcomers, finite_scores(score, features))
        hall = _admitted(hall, HallOfFame(scored, features), spaces, goal.excluded, goal.wanted)
        if generation == options.generations:
            break
        current = _merged(elites, scored)
        elites = current.take(np.sort(np.argsort(-current.scores, kind="stable")[: int(options.survivors.elites * options.population)]))
        newcomers, usable = _offspring(spaces, current, elites, goal, usable, rng, options)
    return hall


def finite_scores(score: Score, features: FeatureRows) -> NDArray[np.float64]:
    """Scores with NaN and infinities replaced by the worst finite one, so that no model can break selection."""
    scores = np.asarray(score(features), dtype=np.float64)
    finite = np.isfinite(scores)
    return scores if finite.all() else np.where(finite, scores, scores[finite].min(initial=0.0) - 1.0)


def parents(scores: NDArray[np.float64], count: int, selection: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of `count` parents, `[count]`, drawn by rank: the probability falls by a factor e per `selection` of the ranking.

    Ranks, unlike scores, need not be positive, and no outlier takes over.
    """
    order: NDArray[np.int64] = np.argsort(-scores, kind="stable")
    depth = max(selection, 1e-3)
    # Inverse of the cumulative distribution of an exponential cut off at the end of the ranking.
    position = -depth * np.log1p(-rng.random(count) * -np.expm1(-1 / depth))
    places = np.minimum((position * len(scores)).astype(np.int64), len(scores) - 1)
    return np.asarray(order[places], np.int64)


def gathered(chosen: NDArray[np.int64], owners: NDArray[np.int64], block: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """About as many parents as `chosen`, without spaces that have fewer than `block`: their total is drawn again, `block` parents of one space at a
    time, so that each is expected as often as before. `owners`: the space of each member.
    """
    whose = owners[chosen]
    counts = np.bincount(whose)
    few = np.where(counts < block, counts, 0)
    lots = allotted(int(few.sum() / block + rng.random()), few.astype(np.float64), rng)
    again = [rng.choice(chosen[whose == space], block * lots[space]) for space in np.flatnonzero(lots)]
    return np.concatenate([chosen[few[whose] == 0], *again])


def _offspring(
    spaces: Sequence[SampledSpace], current: Ranked, elites: Ranked, goal: SearchGoal, usable: float, rng: np.random.Generator, options: EvolutionOptions
) -> tuple[Population, float]:
    """New legal members besides the elites: mutations of the anchors, children of current members, and fresh samples.

    `usable`: share of candidates that were legal and new in the last generation; the second result is this generation's.
    """
    room = options.population - len(elites.scores)
    surplus = min(1 / usable, MOST_SURPLUS)
    anchors = goal.anchors
    local = int(goal.local_share * options.population * surplus) if len(anchors) else 0
    fresh = int(options.survivors.fresh * options.population * surplus)
    bred = max(int(room * surplus) - local - fresh, 0)
    block = max(int(room * surplus / BLOCKS), 1)
    chosen = gathered(parents(current.scores, bred, options.survivors.selection, rng), current.members.owners(), block, rng)
    candidates = joined(
        _mutated(spaces, anchors.take(np.arange(local) % max(len(anchors), 1)), rng, options),
        _bred(spaces, current.members.take(chosen), rng, options),
        _drawn(spaces, fresh, goal.weights, block, rng),
    )
    present = [np.sort(sampled.tables.keys(block)) for sampled, block in zip(spaces, elites.members.blocks, strict=True)]
    new = candidates.distinct(spaces, present).legal(spaces)
    share = max(len(new) / max(len(candidates), 1), 1 / MOST_SURPLUS)
    if len(new) > room:
        return new.take(np.sort(rng.permutation(len(new))[:room])), share
    if len(new) >= room / 2:
        return new, share
    # Hardly anything is legal or new: sampling may still find some.
    present = [np.sort(np.concatenate([keys, sampled.tables.keys(block)])) for sampled, keys, block in zip(spaces, present, new.blocks, strict=True)]
    return joined(new, sample_population(spaces, room - len(new), goal.weights, rng, present)), share


def _drawn(spaces: Sequence[SampledSpace], count: int, weights: NDArray[np.float64], block: int, rng: np.random.Generator) -> Population:
    """About `count` members, legal or not, from a few spaces drawn by weight."""
    counts = allotted(int(count / block + rng.random()), weights, rng) * block
    return Population(tuple(sampled.draw(int(wanted), rng) for sampled, wanted in zip(spaces, counts, strict=True)))


def _bred(spaces: Sequence[SampledSpace], chosen: Population, rng: np.random.Generator,
          options: EvolutionOptions) -> Population:
    def cross(space: int, rows: Rows) -> Rows:
        pairs = np.flatnonzero(rng.random(len(rows)) < options.crossover)
        result = rows.copy()
        result[pairs] = crossover(rows[pairs], rows[rng.integers(0, max(len(rows), 1), len(pairs))], rng)
        return result

    return _mutated(spaces, chosen.mapped(cross), rng, options, share=options.mutation)


def _mutated(spaces: Sequence[SampledSpace], members: Population, rng: np.random.Generator, options: EvolutionOptions,
             share: float = 1.0) -> Population:
    def change(space: int, rows: Rows) -> Rows:
        moving = np.flatnonzero(rng.random(len(rows)) < share)
        result = rows.copy()
        result[moving] = mutate(spaces[space].tables, rows[moving], rng, options.extra_moves, options.jump)
        return result

    return members.mapped(change)


def _merged(first: Ranked, second: Ranked) -> Ranked:
    """Members of both, space by space."""
    scores = np.concatenate([first.scores, second.scores])
    return Ranked(joined(first.members, second.members), scores[_order(first.members, second.members)])


def _order(first: Population, second: Population) -> NDArray[np.int64]:
    """The position of each member of `joined(first, second)` among the members of `first` followed by those of `second`."""
    return np.argsort(np.concatenate([first.owners(), second.owners()]), kind="stable")


def _admitted(hall: HallOfFame, newcomers: HallOfFame, spaces: Sequence[SampledSpace], excluded: Keys, wanted: int) -> HallOfFame:
    """The hall of fame after a generation: the best `wanted` overall and the best of each space."""
    new = np.flatnonzero(newcomers.members.fresh(spaces, excluded))
    promising = newcomers.take(_foremost(newcomers.ranked, new, wanted))
    if not len(hall.scores):
        return promising
    order = _order(hall.members, promising.members)
    both = HallOfFame(_merged(hall.ranked, promising.ranked), join([hall.features, promising.features]).take(order))
    return both.take(_foremost(both.ranked, _first_of_each(both.members, spaces), wanted))


def _foremost(ranked: Ranked, among: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """Of the members `among`, the best `wanted` and the best of each space; ascending."""
    order = among[np.argsort(-ranked.scores[among], kind="stable")]
    _, best_of_space = np.unique(ranked.members.owners()[order], return_index=True)
    chosen = np.zeros(len(order), bool)  # not np.union1d, which imports numpy.ma
    chosen[:wanted] = chosen[best_of_space] = True
    return np.sort(order[chosen])


def _first_of_each(members: Population, spaces: Sequence[SampledSpace]) -> NDArray[np.int64]:
    """Indices of members without repeats, ascending."""
    found, start = [np.zeros(0, np.int64)], 0
    for sampled, block in zip(spaces, members.blocks, strict=True):
        _, first = np.unique(sampled.tables.keys(block), return_index=True)
        found.append(np.sort(first) + start)
        start += len(block)
    return np.concatenate(found)
