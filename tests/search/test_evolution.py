from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.cost_model.random_model import RandomModel
from ansor.ir.feature_rows import FeatureRows
from ansor.search.diversity import spread
from ansor.search.evolution import EvolutionOptions, SearchGoal, evolve, gathered, parents
from ansor.search.population import empty_population, sample_population
from ansor.search.sampling import SampledSpace
from tests.search.synthetic import BowlSpace

NOTHING = [np.zeros(0, np.uint64)]
SMALL = EvolutionOptions(population=64, generations=6)


def large_bowl() -> BowlSpace:
    return BowlSpace((60,) * 6, (13, 50, 7, 31, 59, 22))


def best_of_evolution(space: BowlSpace, seed: int) -> float:
    spaces, rng = [SampledSpace(space)], np.random.default_rng(seed)

    def score(features: FeatureRows) -> np.ndarray:
        return -space.seconds(features.rows[:, : len(space.extents)].astype(np.int64))

    start = sample_population(spaces, SMALL.population, np.ones(1), rng, NOTHING)
    hall = evolve(spaces, score, start, SearchGoal.anywhere(spaces, 4), rng, SMALL)
    return float(-hall.scores.max())


@pytest.mark.parametrize("seed", range(5))
def test_beats_random_search_with_the_same_number_of_evaluations(seed: int) -> None:
    evolved = large_bowl()
    best = best_of_evolution(evolved, seed)
    random = large_bowl()
    rows = SampledSpace(random).sample(evolved.evaluated, np.random.default_rng(seed))
    assert evolved.evaluated <= SMALL.population * (SMALL.generations + 1)
    assert best < random.seconds(rows).min()


@dataclass(eq=False)
class CountingBowl(BowlSpace):
    """Counts how often the search asks."""

    checks: int = 0
    descriptions: int = 0

    def legal(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        self.checks += 1
        return super().legal(rows)

    def features(self, rows: NDArray[np.int64]) -> FeatureRows:
        self.descriptions += 1
        return super().features(rows)


def test_a_generation_lowers_each_space_once_and_few_of_many() -> None:
    bowls = [CountingBowl((60,) * 6, (13, 50, 7, 31, 59, 22), even=True) for _ in range(40)]
    spaces, rng = [SampledSpace(bowl) for bowl in bowls], np.random.default_rng(0)
    options = EvolutionOptions(population=2048, generations=4)
    start = sample_population(spaces, options.population, np.ones(40), rng, NOTHING * 40)
    sampled = [bowl.checks for bowl in bowls]
    evolve(spaces, RandomModel().predict, start, SearchGoal.anywhere(spaces, 32), rng, options)
    assert all(bowl.checks - before <= options.generations for bowl, before in zip(bowls, sampled, strict=True))
    assert all(bowl.descriptions <= options.generations + 1 for bowl in bowls)
    # After the first generation: 16 blocks, counting those of fresh rows, and one more where drawing rounds up.
    assert sum(bowl.descriptions for bowl in bowls) <= 40 + options.generations * 18
    assert 0.75 * 5 * options.population <= sum(bowl.evaluated for bowl in bowls) <= 5 * options.population


def test_hall_is_distinct_unmeasured_and_best_of_what_it_met() -> None:
    space = BowlSpace((6, 6), (3, 3))
    spaces, rng = [SampledSpace(space)], np.random.default_rng(0)
    measured = np.sort(spaces[0].tables.keys(np.array([[3, 3], [3, 2]])))
    start = sample_population(spaces, 36, np.ones(1), rng, NOTHING)
    goal = SearchGoal(3, [measured], np.ones(1), empty_population(spaces))
    hall = evolve(spaces, lambda features: -space.seconds(features.rows[:, :2].astype(np.int64)), start, goal, rng, SMALL)
    rows = hall.members.blocks[0].tolist()
    assert len(rows) == 3 and [3, 3] not in rows and [3, 2] not in rows
    assert all(abs(first - 3) + abs(second - 3) == 1 for first, second in rows)


def test_hall_scores_belong_to_their_members_in_several_spaces() -> None:
    bowls = [BowlSpace((9, 9), (1, 1), floor=3.0), BowlSpace((9, 9, 9), (8, 8, 8), floor=1.0), BowlSpace((2,), (0,))]
    spaces, rng = [SampledSpace(bowl) for bowl in bowls], np.random.default_rng(0)

    def score(features: FeatureRows) -> np.ndarray:
        return np.asarray(features.rows @ np.array([1, 10, 100, 0, 0, 0, 0, 1000.0]), np.float64)

    start = sample_population(spaces, 50, np.ones(3), rng, NOTHING * 3)
    hall = evolve(spaces, score, start, SearchGoal(10, NOTHING * 3, np.ones(3), start.take(np.arange(3)), 0.3), rng, SMALL)
    np.testing.assert_array_equal(hall.scores, score(hall.members.features(spaces)))
    assert (hall.members.counts() > 0).all()  # the best of each space is always there


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_no_score_breaks_selection(value: float) -> None:
    spaces, rng = [SampledSpace(BowlSpace())], np.random.default_rng(0)
    start = sample_population(spaces, 64, np.ones(1), rng, NOTHING)
    hall = evolve(spaces, lambda features: np.full(features.count, value), start, SearchGoal.anywhere(spaces, 8), rng, SMALL)
    assert np.isfinite(hall.scores).all() and len(hall.members) == 8


def test_empty_start_gives_an_empty_hall() -> None:
    spaces = [SampledSpace(BowlSpace())]
    hall = evolve(spaces, RandomModel().predict, empty_population(spaces), SearchGoal.anywhere(spaces, 8), np.random.default_rng(0), SMALL)
    assert len(hall.members) == 0


def test_parents_prefer_the_best_and_spare_none() -> None:
    scores = np.arange(100.0)
    chosen = parents(scores, 20_000, 0.15, np.random.default_rng(0))
    counts = np.bincount(chosen, minlength=100)
    assert counts[85:].sum() > 0.6 * len(chosen)
    assert counts.min() >= 0 and counts[:50].sum() > 0


def test_gathered_parents_come_in_blocks_as_often_as_before() -> None:
    owners = np.repeat(np.arange(20), 10)
    rng = np.random.default_rng(0)
    drawn = np.zeros(20)
    for _ in range(400):
        chosen = np.concatenate([rng.integers(0, 100, 30), rng.integers(100, 110, 90)])
        kept = np.bincount(owners[gathered(chosen, owners, 16, rng)], minlength=20)
        assert kept[10] == 90 and set(kept[:10].tolist()) <= {0, 16, 32} and not kept[11:].any()
        drawn += kept
    np.testing.assert_allclose(drawn[:10] / 400, 3.0, atol=1.5)


def test_spread_avoids_repeats_and_near_copies() -> None:
    rows = np.array([[0, 0], [0, 0], [0.01, 0], [5, 5], [9, 1]], np.float32)
    features = FeatureRows(rows, np.arange(5), 5)
    scores = np.array([1.0, 1.0, 0.99, 0.8, 0.7])
    order = np.argsort(-scores, kind="stable")
    none = np.zeros(0, np.int64)
    assert spread(features, scores, order, none, 3, 1.0).tolist() == [0, 3, 4]
    assert spread(features, scores, order, none, 4, 0.0).tolist() == [0, 2, 3, 4]
    assert spread(features, scores, order, np.array([4]), 2, 1.0).tolist() == [4, 0]
    assert sorted(spread(features, scores, order, none, 99, 1.0).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("scores", [np.zeros(4), np.full(4, -3.0)])
def test_spread_of_scores_that_are_not_positive(scores: np.ndarray) -> None:
    features = FeatureRows(np.ones((4, 2), np.float32), np.arange(4), 4)
    assert len(spread(features, scores, np.arange(4), np.zeros(0, np.int64), 2, 1.0)) == 2


