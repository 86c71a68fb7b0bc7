"""What the body of a register tile loads and computes."""

import pytest

from ansor import te
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.register_tile import Tile, register_tile
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Fuse, Reorder, Split, Step, Unroll, Vectorize
from ansor.te.tensor import Tensor

LANES = 16


def last(tensors: list[Tensor], *steps: Step) -> Statement:
    """The last statement of a program."""
    return statements_of(Sketch(Dag(tensors), steps).lower_row(()))[-1]


def tile_of(tensors: list[Tensor], *steps: Step, optimizes: bool = True) -> Tile:
    return register_tile(last(tensors, *steps), LANES, optimizes=optimizes)


def reads(tile: Tile) -> dict[str, float]:
    return {buffer.name: float(count) for buffer, count in tile.reads.items()}


def sums(order: tuple[str, ...]) -> tuple[list[Tensor], Reorder]:
    """y[i] = sum over m and k of a[i, k] * b[m, k]."""
    a, b = te.placeholder((64, 20), name="a"), te.placeholder((8, 20), name="b")
    m, k = te.reduce_axis(8, name="m"), te.reduce_axis(20, name="k")
    return [a, b, te.compute((64,), lambda i: te.sum(a[i, k] * b[m, k], axis=[m, k]), name="y")], Reorder("y", order)


@pytest.mark.parametrize(("order", "found"), [(("m", "k", "i"), {"a": 64, "b": 1}), (("k", "m", "i"), {"a": 64 / 8, "b": 1})])
def test_what_the_innermost_reduction_does_not_change_is_loaded_once(order: tuple[str, ...], found: dict[str, float]) -> None:
    tensors, reorder = sums(order)
    assert reads(tile_of(tensors, reorder, Vectorize("y", "i"))) == found, "a moves by 20 elements: each lane is a load"


def test_boards_count_every_load() -> None:
    tensors, reorder = sums(("k", "m", "i"))
    assert reads(tile_of(tensors, reorder, Vectorize("y", "i"), optimizes=False)) == {"a": 64, "b": 1}


def test_a_function_of_what_unrolled_loops_share_is_computed_once() -> None:
    """exp(a[k]) is the same for all four vectors of y; the product is added in the same instruction."""
    a, b, k = te.placeholder((32,), name="a"), te.placeholder((32, 64), name="b"), te.reduce_axis(32, name="k")
    tensors = [a, b, te.compute((64,), lambda i: te.sum(te.exp(a[k]) * b[k, i], axis=k), name="y")]
    work = tile_of(tensors, Reorder("y", ("k", "i")), Vectorize("y", "i")).work
    assert (float(work.calls), float(work.arithmetic), float(work.choices)) == (1, 4, 0)


def test_an_addition_to_a_product_that_rows_share_is_an_instruction_of_its_own() -> None:
    """s[k] * t[k] is computed once for all four vectors of y; each vector adds it to x[k, i], and that to the sum."""
    x, s, t, k = te.placeholder((32, 64), name="x"), te.placeholder((32,), name="s"), te.placeholder((32,), name="t"), te.reduce_axis(32, name="k")
    tensors = [x, s, t, te.compute((64,), lambda i: te.sum(x[k, i] + s[k] * t[k], axis=k), name="y")]
    assert float(tile_of(tensors, Reorder("y", ("k", "i")), Vectorize("y", "i")).work.arithmetic) == 1 + 4 + 4


def test_without_a_reduction_rows_share_what_does_not_move() -> None:
    """exp(s[j]) is computed once for all sixteen rows."""
    a, s = te.placeholder((16, 64), name="a"), te.placeholder((64,), name="s")
    tensors = [a, s, te.compute((16, 64), lambda i, j: a[i, j] * te.exp(s[j]), name="y")]
    assert float(tile_of(tensors, Reorder("y", ("i", "j")), Vectorize("y", "j")).work.calls) == 4 / 16
    swapped = [Split("y", "j", (16,), 2), Reorder("y", ("j_0", "i", "j_1")), Vectorize("y", "j_1")]
    assert float(tile_of(tensors, *swapped).work.calls) == 1 / 16


def test_what_is_read_from_a_local_buffer_changes_with_the_loops_around_it() -> None:
    """Each row of s is other data in the same place: its exponentials, and the loads of them, are as many as rows have vectors."""
    a, b, k = te.placeholder((6, 20), name="a"), te.placeholder((20, 32), name="b"), te.reduce_axis(20, name="k")
    s = te.compute((6, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="s")
    tensors = [a, b, te.compute((6, 32), lambda i, j: te.exp(s[i, j]), name="y")]
    tile = tile_of(tensors, ComputeAt("s", "y", "i"), Vectorize("y", "j"))
    assert (float(tile.work.calls), reads(tile)) == (2, {"s": 2})


@pytest.mark.parametrize(("tile", "vectors"), [((8,), 1), ((6,), 6), ((16,), 16)])
def test_indices_that_divide_are_written_out_by_element(tile: tuple[int, ...], vectors: int) -> None:
    """y[f] = sum over k of a[k, f % 8, f / 8]: eight steps of f move a evenly, but six or sixteen do not."""
    a, k = te.placeholder((32, 8, 6), name="a"), te.reduce_axis(32, name="k")
    tensors = [a, te.compute((6, 8), lambda i, j: te.sum(a[k, j, i], axis=k), name="y")]
    steps = [Fuse("y", ("i", "j")), Split("y", "i_j_f", tile, 2), Reorder("y", ("i_j_f_0", "k", "i_j_f_1")), Vectorize("y", "i_j_f_1")]
    assert float(tile_of(tensors, *steps).vectors) == vectors


@pytest.mark.parametrize(("row_length", "lanes", "vectors"), [(12, 16, 3), (16, 1, 1)])
def test_a_reduction_that_divides_its_index_has_no_vectors(row_length: int, lanes: float, vectors: float) -> None:
    """y[i] = sum over j and k < 12 of a[i, j, k], as one loop: if rows of a are longer than 12, the C code divides, and writes no vectors."""
    a = te.placeholder((8, 4, row_length), name="a")
    j, k = te.reduce_axis(4, name="j"), te.reduce_axis(12, name="k")
    tensors = [a, te.compute((8,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="y")]
    tile = tile_of(tensors, Fuse("y", ("j", "k")), Vectorize("y", "j_k_f"))
    assert (float(tile.partial.lanes), float(tile.partial.vectors)) == (lanes, vectors)


@pytest.mark.parametrize("row_length", [12, 16])
def test_unrolled_rows_around_an_annotated_reduction_belong_to_the_tile(row_length: int) -> None:
    """The C code has a sum for each of the four rows, whether the reduction is written as vectors or not."""
    a, j, k = te.placeholder((16, 4, row_length), name="a"), te.reduce_axis(4, name="j"), te.reduce_axis(12, name="k")
    tensors = [a, te.compute((16,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="y")]
    steps = [Fuse("y", ("j", "k")), Split("y", "i", (4,), 2), Reorder("y", ("i_0", "i_1", "j_k_f")), Vectorize("y", "j_k_f"), Unroll("y", "i_1")]
    assert float(tile_of(tensors, *steps).vectors) == 4


def test_a_reduction_whose_index_is_read_has_no_vectors() -> None:
    table, rows, k = te.placeholder((50,), name="table"), te.placeholder((8, 48), "int32", name="rows"), te.reduce_axis(48, name="k")
    tensors = [table, rows, te.compute((8,), lambda i: te.sum(table[rows[i, k]], axis=k), name="y")]
    assert float(tile_of(tensors, Vectorize("y", "k")).partial.lanes) == 1
