from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.schedule.choice import MAX_INNERMOST, MAX_ROWS, Choice, factor_table, level_choice, tile_choice, uneven_tile_choice


@pytest.mark.parametrize(
    ("extent", "one", "three"),
    [(8, 4, 20), (56, 8, 80), (63, 6, 40), (64, 7, 84), (128, 7, 119), (224, 10, 220), (512, 7, 210), (1000, 10, 368), (1024, 7, 266), (2048, 7, 329)],
)
def test_tables_have_the_references_number_of_tilings(extent: int, one: int, three: int) -> None:
    assert tile_choice("x", extent, 1).size == one
    assert tile_choice("x", extent, 3).size == three


@given(st.integers(1, 200), st.integers(1, 3))
def test_tables_hold_every_exact_tiling_once(extent: int, parts: int) -> None:
    table = factor_table(extent, parts)
    products = table.prod(axis=1)
    assert (extent % products == 0).all() and (table[:, -1] <= MAX_INNERMOST).all()
    assert len(np.unique(table, axis=0)) == len(table)
    assert (table[0] == 1).all()


@given(st.integers(1, 120), st.integers(1, 3))
def test_neighbours_move_one_prime_and_are_mutual(extent: int, parts: int) -> None:
    choice = tile_choice("x", extent, parts)
    near = choice.neighbours
    assert near is not None and near.shape[0] == choice.size
    for value, row in enumerate(near):
        for other in row[row >= 0]:
            assert value != other and value in near[other]


@pytest.mark.parametrize("extent", [17, 127, 255, 512, 1000, 1021])
@pytest.mark.parametrize("parts", [1, 3])
def test_uneven_tables_add_lengths_that_leave_little_empty(extent: int, parts: int) -> None:
    choice = uneven_tile_choice("x", extent, parts)
    exact = factor_table(extent, parts)
    assert (choice.table[: len(exact)] == exact).all() and choice.size > len(exact)
    assert len(np.unique(choice.table, axis=0)) == choice.size
    innermost = choice.table[len(exact) :, -1]
    tiles = -(-extent // innermost)
    assert (extent % innermost > 0).all() and (extent >= 0.8 * tiles * innermost).all()
    outer = choice.table[len(exact) :, :-1].prod(axis=1)
    assert ((tiles % outer == 0) | ((tiles + 1) % outer == 0)).all()
    assert choice.weights is not None and (choice.weights[: len(exact)] == 1).all() and (choice.weights[len(exact) :] < 1).all()


def test_every_uneven_value_has_neighbours_that_are_near() -> None:
    choice = uneven_tile_choice("x", 127, 3)
    near = choice.neighbours
    assert near is not None and (near[:, 0] >= 0).all() and (near.max(axis=1) < choice.size).all()
    assert all(value not in row for value, row in enumerate(near))
    twelve = choice.index_of((1, 1, 12))
    assert twelve is not None and choice.index_of((1, 1, 11)) in near[twelve] and choice.index_of((1, 1, 2)) not in near[twelve]


def test_short_or_smooth_extents_gain_nothing_from_uneven_lengths() -> None:
    assert uneven_tile_choice("x", 2, 2).weights is None


def test_values_are_found_again() -> None:
    choice = tile_choice("x", 12, 2)
    assert choice.index_of((2, 3)) is not None and tuple(choice.table[choice.index_of((2, 3)) or 0]) == (2, 3)
    assert choice.index_of((5, 1)) is None


def test_levels_have_weights_and_no_neighbours() -> None:
    choice = level_choice("p", (0, 2, 4), (0.1, 0.5, 0.4))
    assert choice.size == 3 and choice.neighbours is None and choice.weights is not None and choice.weights.sum() == pytest.approx(1)


def test_one_gene_may_decide_about_several_numbers() -> None:
    choice = Choice("both", np.array([[4, 2, 64], [8, 1, 128]]), numbers=(("tile", 2), ("limit", 1)))
    assert choice.named([4, 2, 64]) == {"tile": (4, 2), "limit": (64,)}
    assert tile_choice("C.i", 8, 2).named([4, 2]) == {"C.i": (4, 2)}


def test_tiles_of_other_tables_have_neighbours_that_are_near() -> None:
    near = Choice("tile", np.array([[1], [2], [4], [64]]), "tile", None, 64).neighbours
    assert near is not None and [[k for k in row if k >= 0] for row in near.tolist()] == [[1], [0, 2], [1], [2]]
    alone = Choice("tile", np.array([[3]]), "tile", None, 64).neighbours
    assert alone is not None and (alone == -1).all()


@pytest.mark.parametrize("extent", [5040, 720720, 10**6, 10**9, 2**60, 2**61 - 1])
@pytest.mark.parametrize("parts", [1, 3, 4])
def test_tables_of_any_extent_are_bounded(extent: int, parts: int) -> None:
    choice = uneven_tile_choice("t", extent, parts)
    assert choice.size <= MAX_ROWS
    assert choice.index_of((1,) * parts) is not None
    assert choice.neighbours is not None and (choice.size == 1 or (choice.neighbours[:, 0] >= 0).all())


def test_tables_that_are_cut_keep_the_smallest_tiles() -> None:
    whole = [row for row in np.ndindex(17, 17, 17) if 0 < np.prod(row) <= 16 and 720720 % np.prod(row) == 0]
    assert set(whole) <= set(map(tuple, factor_table(720720, 3).tolist()))
