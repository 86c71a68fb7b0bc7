"""Reducing nests as register tiles: which loops they take, and what is held."""

from ansor import te
from ansor.codegen.patterns.tiles import MAX_TILE
from ansor.schedule.steps import Reorder, Split, Step, Vectorize
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms


def product(n: int, m: int, k: int) -> list[Tensor]:
    a, b, r = te.placeholder((n, k), name="a"), te.placeholder((k, m), name="b"), te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def tiled(rows: int, columns: int) -> tuple[Step, ...]:
    order = Reorder("c", ("i_0", "j_0", "k", "i_1", "j_1"))
    return (Split("c", "i", (rows,), 2), Split("c", "j", (columns,), 2), order, Vectorize("c", "j_1"))


def test_accumulators_are_held_across_the_reduction() -> None:
    assert forms(product(8, 32, 5), *tiled(4, 16)).splitlines()[1:] == [
        "  for c_i_0 in 2",
        "    for c_j_0 in 2",
        "      register tile  c: a register tile of 4 x 16, over c_k",
    ]
    text = body(product(8, 32, 5), *tiled(4, 16))
    assert text.count("f32x8 acc0_") == 8 and text.count("*(f32x8 *)&c[") == 8


def test_a_tile_that_does_not_divide_is_cut() -> None:
    assert forms(product(7, 16, 5), *tiled(4, 16)).endswith("c: a register tile of 4 x 16, over c_k, cut")
    assert body(product(7, 16, 5), *tiled(4, 16)).count("else if (") == 1


def test_too_many_accumulators_are_not_held() -> None:
    rows = MAX_TILE  # of two vectors each
    text = body(product(rows, 16, 5), *tiled(rows, 16))
    assert f"c_i_1 < {rows}" in text and "c_k != 0" in text  # fewer at a time, stored after each step


def test_loops_outside_a_tile_load_what_they_left() -> None:
    steps = (Split("c", "k", (4,), 2), Reorder("c", ("k_0", "i", "k_1", "j")), Vectorize("c", "j"))
    assert "if (c_k_0 != 0) acc0_0 = *(f32x8 *)&c[c_i * 8];" in body(product(4, 8, 8), *steps)


def test_choices_in_a_tile_that_is_cut_are_made_in_vectors() -> None:
    a, b, r = te.placeholder((7, 16), name="a"), te.placeholder((5, 16), name="b"), te.reduce_axis((0, 5), name="k")
    above = te.compute((7, 16), lambda i, j: te.sum(te.select(a[i, j] > b[r, j], a[i, j], 0.0), axis=r), name="c")
    text = body([a, b, above], *tiled(4, 16))
    assert "else if (" in text and text.count("select_f32x8(") == 2 * (4 + 3)


def test_choices_read_rows_at_a_fixed_distance_from_what_the_cut_guards() -> None:
    """Rows i + k exist wherever row i of the result does."""
    a, b, r = te.placeholder((11, 16), name="a"), te.placeholder((5, 16), name="b"), te.reduce_axis((0, 5), name="k")
    above = te.compute((7, 16), lambda i, j: te.sum(te.select(a[i + r, j] > b[r, j], a[i + r, j], 0.0), axis=r), name="c")
    text = body([a, b, above], *tiled(4, 16))
    assert "else if (" in text and text.count("select_f32x8(") == 2 * (4 + 3)
