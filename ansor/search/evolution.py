"""Evolution over an integer matrix: score, keep the best new programs, select, cross over, mutate, filter, again.

Everything but `legal`, `features` and the model's `predict` is array arithmetic over the whole population.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows
from ansor.search.crossover import crossover
from ansor.search.mutation import mutate
from ansor.search.population import Keys, Population, empty_population, joined, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.space import Rows

Score = Callable[[FeatureRows], NDArray[np.float64]]

BREEDING_ATTEMPTS = 3
"""Times offspring are bred to replace the illegal and the repeated before fresh samples fill the gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionOptions:
    """Shares are of the population. `selection`: share of the ranking within which most parents are found."""

    population: int = 2048
    generations: int = 4
    mutation: float = 0.85
    crossover: float = 0.3
    extra_moves: float = 0.5
    jump: float = 0.1
    elites: float = 0.1
    fresh: float = 0.1
    selection: float = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Members and their scores, `[n]`, aligned; finite."""

    members: Population
    scores: NDArray[np.float64]


def evolve(spaces: Sequence[SampledSpace], score: Score, start: Population, anchors: Population, local_share: float,
           space_weights: NDArray[np.float64], excluded: Keys, wanted: int, rng: np.random.Generator,
           options: EvolutionOptions) -> Ranked:
    """The best distinct programs met that are not `excluded`: at least the best `wanted` of all, and of each space.

    `anchors` are the best measured programs: each generation holds `local_share` of mutations of them. Deterministic for
    the state of `rng`. May hold fewer than `wanted` where spaces are small.
    """
    hall = Ranked(empty_population(spaces), np.zeros(0))
    population = start
    for generation in range(options.generations + 1):
        if not len(population):
            break
        scores = finite_scores(score, population, spaces)
        hall = _admitted(hall, Ranked(population, scores), spaces, excluded, wanted)
        if generation == options.generations:
            break
        population = _next_generation(spaces, Ranked(population, scores), anchors, local_share, space_weights, rng, options)
    return hall


def finite_scores(score: Score, population: Population, spaces: Sequence[SampledSpace]) -> NDArray[np.float64]:
    """Scores with NaN and infinities replaced by the worst finite one, so that no model can break selection."""
    scores = np.asarray(score(population.features(spaces)), dtype=np.float64)
    finite = np.isfinite(scores)
    return scores if finite.all() else np.where(finite, scores, scores[finite].min(initial=0.0) - 1.0)


def parents(scores: NDArray[np.float64], count: int, selection: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of `count` parents, `[count]`, drawn by rank: the chance falls by e per `selection` of the ranking.

    Rank, not score: it needs no positive scores, and one outlier does not take over.
    """
    order: NDArray[np.int64] = np.argsort(-scores, kind="stable")
    depth = max(selection, 1e-3)
    # Inverse of the cumulative distribution of an exponential cut off at the end of the ranking.
    position = -depth * np.log1p(-rng.random(count) * -np.expm1(-1 / depth))
    places = np.minimum((position * len(scores)).astype(np.int64), len(scores) - 1)
    return np.asarray(order[places], np.int64)


def neighbourhood(spaces: Sequence[SampledSpace], anchors: Population, count: int, rng: np.random.Generator,
                  options: EvolutionOptions) -> Population:
    """About `count` distinct legal mutations of the anchors, most one move away."""
    if not len(anchors) or count <= 0:
        return empty_population(spaces)
    copies = anchors.take(np.arange(count) % len(anchors))
    moves = _mutated(spaces, copies, rng, options)
    return moves.distinct(spaces).legal(spaces)


def _next_generation(spaces: Sequence[SampledSpace], current: Ranked, anchors: Population, local_share: float,
                     space_weights: NDArray[np.float64], rng: np.random.Generator,
                     options: EvolutionOptions) -> Population:
    size = options.population
    elites = np.argsort(-current.scores, kind="stable")[: int(options.elites * size)]
    local = neighbourhood(spaces, anchors, int(local_share * size), rng, options)
    population = joined(current.members.take(elites), local).distinct(spaces)
    bred = size - int(options.fresh * size)
    for _ in range(BREEDING_ATTEMPTS):
        missing = bred - len(population)
        if missing <= 0:
            break
        chosen = parents(current.scores, missing, options.selection, rng)
        children = _bred(spaces, current.members.take(chosen), rng, options)
        population = joined(population, children.distinct(spaces).legal(spaces)).distinct(spaces)
    present = [np.sort(sampled.tables.keys(block)) for sampled, block in zip(spaces, population.blocks, strict=True)]
    return joined(population, sample_population(spaces, size - len(population), space_weights, rng, present))


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


def _admitted(hall: Ranked, newcomers: Ranked, spaces: Sequence[SampledSpace], excluded: Keys, wanted: int) -> Ranked:
    """The hall of fame after a generation: the best `wanted` overall and the best of each space."""
    new = np.flatnonzero(newcomers.members.fresh(spaces, excluded))
    members = joined(hall.members, newcomers.members.take(new))
    owners = members.owners()
    # `joined` goes space by space, so scores are put in the same order by a stable sort over the owners of both parts.
    both = np.concatenate([hall.scores, newcomers.scores[new]])
    whose = np.concatenate([hall.members.owners(), newcomers.members.owners()[new]])
    scores = both[np.argsort(whose, kind="stable")]
    first = _first_of_each(members, spaces)
    order = first[np.argsort(-scores[first], kind="stable")]
    _, best_of_space = np.unique(owners[order], return_index=True)
    kept = np.sort(order[np.union1d(np.arange(min(wanted, len(order))), best_of_space)])
    return Ranked(members.take(kept), scores[kept])


def _first_of_each(members: Population, spaces: Sequence[SampledSpace]) -> NDArray[np.int64]:
    """Indices of members without repeats, ascending."""
    found, start = [np.zeros(0, np.int64)], 0
    for sampled, block in zip(spaces, members.blocks, strict=True):
        _, first = np.unique(sampled.tables.keys(block), return_index=True)
        found.append(np.sort(first) + start)
        start += len(block)
    return np.concatenate(found)
