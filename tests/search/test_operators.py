"""Tables, sampling, mutation, crossover, populations: rows stay in range, distinct, legal, reproducible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.ir.feature_rows import FeatureRows, join
from ansor.search.crossover import crossover
from ansor.search.mutation import mutate, redraw
from ansor.search.population import Population, allotted, empty_population, joined, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.tables import all_rows, choice_tables
from tests.search.synthetic import BowlSpace, MatmulSpace

sizes = st.lists(st.integers(1, 9), min_size=0, max_size=6)
seeds = st.integers(0, 2**32)


def space_of(extents: list[int], even: bool = False) -> BowlSpace:
    weights = {1: [0.0] + [1.0] * (extents[1] - 1)} if len(extents) > 1 and extents[1] > 1 else {}
    return BowlSpace(tuple(extents), (0,) * len(extents), even=even, value_weights=weights)


@given(sizes, seeds)
def test_mutation_and_crossover_stay_in_range(extents: list[int], seed: int) -> None:
    space, rng = SampledSpace(space_of(extents)), np.random.default_rng(seed)
    rows = space.draw(50, rng)
    mutated = mutate(space.tables, rows, rng)
    crossed = crossover(rows, mutated, rng)
    for result in (rows, mutated, crossed):
        assert result.shape == (50, len(extents)) and result.dtype == np.int64
        assert ((result >= 0) & (result < np.array(extents, np.int64))).all()
    assert ((crossed == rows) | (crossed == mutated)).all()


@given(st.lists(st.integers(2, 9), min_size=1, max_size=5), seeds)
def test_mutation_without_jumps_moves_every_row_and_tiles_to_neighbours(extents: list[int], seed: int) -> None:
    space, rng = SampledSpace(BowlSpace(tuple(extents), (0,) * len(extents))), np.random.default_rng(seed)
    rows = space.draw(50, rng)
    mutated = mutate(space.tables, rows, rng, jump=0.0)
    assert (mutated != rows).any(axis=1).all()
    assert (np.abs(mutated - rows)[:, ::2] <= 1).all()


def test_mutation_reaches_every_value_of_a_choice_without_neighbours() -> None:
    space = SampledSpace(BowlSpace((1, 7), (0, 0)))
    mutated = mutate(space.tables, np.full((500, 2), [0, 3]), np.random.default_rng(0), jump=0.0)
    assert set(mutated[:, 1].tolist()) == {0, 1, 2, 4, 5, 6}


def test_mutation_leaves_its_argument_alone() -> None:
    space = SampledSpace(BowlSpace())
    rows = space.draw(20, np.random.default_rng(0))
    before = rows.copy()
    mutate(space.tables, rows, np.random.default_rng(1))
    np.testing.assert_array_equal(rows, before)


def test_sampling_weights_are_kept() -> None:
    space = BowlSpace((4, 3), (0, 0), value_weights={0: [0.0, 3.0, 1.0, 0.0]})
    drawn = redraw(choice_tables(space), np.zeros(8000, np.int64), np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[3] == 0
    assert 2.6 < counts[1] / counts[2] < 3.4


def test_weights_also_order_a_listed_space() -> None:
    space = SampledSpace(BowlSpace((4,), (0,), value_weights={0: [0.0, 1.0, 1.0, 0.0]}))
    rows = space.sample(4, np.random.default_rng(0))
    assert sorted(rows[:2, 0].tolist()) == [1, 2] and sorted(rows[2:, 0].tolist()) == [0, 3]


@given(sizes, seeds, st.booleans())
def test_samples_are_distinct_legal_and_not_excluded(extents: list[int], seed: int, even: bool) -> None:
    space, rng = SampledSpace(space_of(extents, even)), np.random.default_rng(seed)
    first = space.sample(20, rng)
    again = space.sample(20, rng, np.sort(space.tables.keys(first)))
    both = np.concatenate([first, again])
    assert len(np.unique(both, axis=0)) == len(both)
    assert space.legal(both).all()
    legal = int(space.legal(all_rows(space.tables.sizes)).sum())
    assert len(both) == min(40, legal)


def test_large_space_gives_what_is_asked_and_an_illegal_one_gives_up() -> None:
    large = BowlSpace((100,) * 10, (0,) * 10, even=True)
    assert len(SampledSpace(large).sample(3000, np.random.default_rng(0))) == 3000
    large.legal = lambda rows: np.zeros(len(rows), bool)  # type: ignore[method-assign]
    assert len(SampledSpace(large).sample(3000, np.random.default_rng(0))) == 0


@given(st.integers(0, 300), st.lists(st.floats(0, 5), min_size=1, max_size=6), seeds)
def test_allotted_sums_up_and_gives_nothing_to_the_weightless(count: int, weights: list[float], seed: int) -> None:
    array = np.array(weights)
    quota = allotted(count, array, np.random.default_rng(seed))
    assert quota.sum() == (count if (array > 0).any() else 0)
    assert (quota >= 0).all() and (quota[array == 0] == 0).all()
    if array.sum() > 1e-3:
        assert (np.abs(quota - count * array / array.sum()) < 1 + 1e-6).all()


def test_population_makes_up_for_small_spaces() -> None:
    spaces = [SampledSpace(BowlSpace((2,), (0,))), SampledSpace(BowlSpace()), SampledSpace(BowlSpace((1,), (0,)))]
    nothing = [np.zeros(0, np.uint64)] * 3
    population = sample_population(spaces, 90, np.ones(3), np.random.default_rng(0), nothing)
    assert population.counts().tolist() == [2, 87, 1]
    tiny = sample_population(spaces[:1], 90, np.ones(1), np.random.default_rng(0), nothing[:1])
    assert len(tiny) == 2


def test_population_members_keep_their_rows() -> None:
    spaces = [SampledSpace(BowlSpace((3, 3), (0, 0))), SampledSpace(BowlSpace((5,), (0,)))]
    population = Population((np.array([[0, 1], [2, 2]]), np.array([[4], [3]])))
    assert [population.member(index) for index in range(4)] == [(0, (0, 1)), (0, (2, 2)), (1, (4,)), (1, (3,))]
    taken = population.take(np.array([3, 1, 3]))
    assert [taken.member(index) for index in range(3)] == [(0, (2, 2)), (1, (3,)), (1, (3,))]
    assert taken.distinct(spaces).counts().tolist() == [1, 1]
    assert len(joined(population, taken)) == 7 and len(empty_population(spaces)) == 0
    assert population.features(spaces).count == 4


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_feature_rows_take_and_join(lengths: list[int], data: st.DataObject) -> None:
    segment = np.repeat(np.arange(len(lengths)), lengths)
    features = FeatureRows(np.arange(len(segment) * 2, dtype=np.float32).reshape(-1, 2), segment, len(lengths))
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    taken = features.take(np.array(chosen, np.int64))
    for new, old in enumerate(chosen):
        np.testing.assert_array_equal(taken.rows[taken.segment == new], features.rows[segment == old])
    both = join([features, taken])
    assert both.count == len(lengths) + len(chosen) and len(both.rows) == len(features.rows) + len(taken.rows)
    np.testing.assert_array_equal(features.sums(np.ones(len(segment))), lengths)


def test_feature_rows_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="ascending"):
        FeatureRows(np.zeros((2, 3), np.float32), np.array([1, 0]), 2)
    with pytest.raises(ValueError, match="one program index per row"):
        FeatureRows(np.zeros((2, 3), np.float32), np.array([0]), 2)
    with pytest.raises(ValueError, match="widths"):
        join([FeatureRows(np.zeros((1, width), np.float32), np.zeros(1, np.int64), 1) for width in (2, 3)])


@pytest.mark.parametrize("change, message", [
    ({"extents": (3, 0)}, "needs a value"), ({"value_weights": {0: [1.0]}}, "as many weights"),
    ({"value_weights": {0: [0.0] * 12}}, "one positive"),
])
def test_bad_tables_are_sentences(change: dict[str, object], message: str) -> None:
    space = BowlSpace()
    for name, value in change.items():
        setattr(space, name, value)
    with pytest.raises(ValueError, match=message):
        choice_tables(space)


def test_tile_moves_of_the_synthetic_matmul_are_moves_of_one_factor() -> None:
    tables = choice_tables(MatmulSpace(64, 64, 64))
    assert tables.neighbours.tiled.tolist() == [True, True, True, False]
    assert (tables.neighbours.degree[: int(tables.sizes[0])] > 0).all()
