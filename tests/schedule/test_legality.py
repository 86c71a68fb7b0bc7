from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.loops import stores
from ansor.schedule.choice import level_choice, tile_choice
from ansor.schedule.legality import legal, legal_rows, offsets, register_tile, vector_pieces
from ansor.schedule.machine import Limit
from ansor.schedule.memory import local_bytes
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, ComputeInline, Parallel, Reorder, Split, Step, Tensorize, Unroll, Vectorize
from ansor.targets import cpu
from ansor.targets.base import CodeGenerator, Kind, parse_target, register_kind
from ansor.tasks.recording import recorded
from ansor.zoo.operators import matmul
from tests.schedule.test_blocks import convolution, tiled_image

AVX2 = parse_target("cpu -mcpu=haswell -threads=1")  # 16 registers of 8 floats
AVX512 = parse_target("cpu -mcpu=znver4 -threads=1")  # 32 registers of 16 floats
RVV = parse_target("micro -board=spike-rvv128")  # 32 registers of 4 floats, up to eight of which are one vector


def tiled(rows: int, columns: int, *steps: Step) -> Sketch:
    split = (Split("C", "i", (rows,), 2), Split("C", "j", (columns,), 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")))
    return Sketch(Dag(matmul(64, 64, 64))).then(*split, *steps)


def tile_of(sketch: Sketch, vector_bytes: int) -> object:
    ((path, store),) = stores(sketch.lower_row(()).body)
    return register_tile(path, store, vector_bytes)


@pytest.mark.parametrize(("rows", "columns", "vector_bytes", "expected"), [(4, 16, 32, 8), (6, 16, 32, 12), (4, 16, 64, 4), (2, 7, 32, 6), (1, 1, 32, 1)])
def test_register_tiles_are_counted_in_vectors(rows: int, columns: int, vector_bytes: int, expected: int) -> None:
    assert tile_of(tiled(rows, columns, Vectorize("C", "j_1")), vector_bytes) == expected


def test_without_vectors_every_element_has_a_register() -> None:
    assert tile_of(tiled(2, 4), 32) == 8


def test_a_vectorised_loop_that_does_not_write_neighbours_has_no_vectors() -> None:
    order = Reorder("C", ("i_0", "j_0", "k", "j_1", "i_1"))
    assert tile_of(tiled(4, 2, order, Vectorize("C", "i_1")), 32) == 8


@pytest.mark.parametrize(("extent", "lanes", "expected"), [(16, 8, 2), (7, 8, 3), (1, 8, 1), (15, 8, 4), (20, 16, 2), (3, 1, 3)])
def test_pieces_are_whole_vectors_then_halves(extent: int, lanes: int, expected: int) -> None:
    assert vector_pieces(extent, lanes) == expected
    assert np.asarray(vector_pieces(np.asarray([extent, extent]), lanes)).tolist() == [expected, expected]


@pytest.mark.parametrize(("rows", "columns", "small", "large"), [(6, 16, True, True), (8, 16, False, True), (8, 64, False, False)])
def test_tiles_have_to_fit_the_registers(rows: int, columns: int, small: bool, large: bool) -> None:
    loops = tiled(rows, columns, Vectorize("C", "j_1")).lower_row(())
    assert legal(loops, AVX2) is small and legal(loops, AVX512) is large


@pytest.mark.parametrize(("columns", "most"), [(32, 3), (16, 7), (8, 14)])
def test_shorter_vectors_of_registers_that_hold_one_together_leave_more_of_them(columns: int, most: int) -> None:
    fits = [legal(tiled(rows, columns, Vectorize("C", "j_1")).lower_row(()), RVV) for rows in (most, most + 1)]
    assert fits == [True, False]


def test_a_reduction_loop_of_one_iteration_holds_nothing() -> None:
    a, b = te.placeholder((64, 1), name="A"), te.placeholder((1, 64), name="B")
    r = te.reduce_axis((0, 1), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    sketch = Sketch(Dag([a, b, c])).then(Reorder("C", ("k", "i", "j")))
    assert tile_of(sketch, 32) == 1 and legal(sketch.lower_row(()), AVX2) is True


def test_local_buffers_have_to_fit_the_stack() -> None:
    x = te.placeholder((8, 512, 512), name="x")
    y = te.compute(x.shape, lambda i, j, k: te.exp(x[i, j, k]), name="y")
    sketch = Sketch(Dag([x, te.compute(x.shape, lambda i, j, k: y[i, j, k] + 1.0, name="z")]))
    image, row = (sketch.then(ComputeAt("y", "z", loop)).lower_row(()) for loop in ("i", "j"))
    assert local_bytes(image.body[0]) == 512 * 512 * 4 and legal(image, AVX2) is False
    assert local_bytes(row.body[0]) == 512 * 4 and legal(row, AVX2) is True


def test_unrolled_code_is_bounded() -> None:
    x = te.placeholder((64, 64, 64), name="x")
    sketch = Sketch(Dag([x, te.compute(x.shape, lambda i, j, k: x[i, j, k] + 1.0, name="y")]))
    assert legal(sketch.then(Unroll("y", "k"), Unroll("y", "j")).lower_row(()), AVX2) is True
    assert legal(sketch.then(Unroll("y", "k"), Unroll("y", "j"), Unroll("y", "i")).lower_row(()), AVX2) is False


def test_a_population_and_its_rows_agree() -> None:
    choices = [tile_choice("i", 64, 1), tile_choice("j", 64, 1), level_choice("v", (0, 1)), level_choice("p", (0, 1, 2))]
    steps = (Split("C", "i", "i", 2), Split("C", "j", "j", 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")), Vectorize("C", "j_1", "v"), Parallel("C", "p"))
    sketch = Sketch(Dag(matmul(64, 64, 64))).then(*steps, choices=choices)
    rows = np.stack(np.meshgrid(*[np.arange(size) for size in sketch.sizes], indexing="ij"), axis=-1).reshape(-1, 4)
    found = legal_rows(sketch.lower_rows(rows), AVX2, len(rows))
    assert 0 < found.sum() < len(rows)
    assert found.tolist() == [legal(sketch.lower_row(row.tolist()), AVX2) for row in rows]


def test_where_nothing_depends_on_the_row() -> None:
    sketch = tiled(4, 16, Vectorize("C", "j_1"))
    assert legal_rows(sketch.lower_rows(np.zeros((3, 0), dtype=np.int64)), AVX2, 3).tolist() == [True] * 3


def tensorised(rows: int, columns: int, a: str = "int8") -> Sketch:
    """A tile of 8-bit products around an instruction that sums four."""
    x, y = te.placeholder((96, 64), a, name="A"), te.placeholder((64, 192), "int8", name="B", constant=True)
    product = te.nn.matmul(x, y, out_dtype="int32", name="C")
    steps = (
        Split("C", "i", (rows,), 2), Split("C", "j", (columns,), 2), Split("C", "k", (4,), 2), Reorder("C", ("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")),
        Tensorize("C", "j_1", "k_1", "avx512_dpbusd_u8s8" if a == "uint8" else "avx512_dpbusd_s8s8"),
    )  # fmt: skip
    return Sketch(Dag([x, y, product])).then(*steps)


@pytest.mark.parametrize(("rows", "columns", "a", "tile", "beside", "fits"), [
    (12, 32, "int8", 24, 2, True), (12, 32, "uint8", 24, 0, True), (6, 64, "int8", 24, 4, False), (6, 64, "uint8", 24, 0, True),
    (4, 24, "int8", 8, 2, True), (4, 6, "uint8", 8, 0, False),
])  # fmt: skip
def test_an_instruction_and_what_it_takes_off_need_registers_and_whole_vectors(rows: int, columns: int, a: str, tile: int, beside: int, fits: bool) -> None:
    loops = tensorised(rows, columns, a).lower_row(())
    ((path, store),) = stores(loops.body)
    assert register_tile(path, store, 64) == tile and offsets(path, store, 64) == beside
    assert legal(loops, AVX512) == fits


def test_a_limit_that_branches_on_a_number_is_named() -> None:
    short = Limit("short loops", lambda loops, machine: max(loop.var.extent for path, _ in stores(loops.body) for loop in path) <= 16)
    register_kind(Kind("short", lambda mcpu: replace(cpu.default(mcpu), kind="short"), cpu.OPTIONS, codegen=CodeGenerator(limits=(short,))))
    sketch = Sketch(Dag(matmul(64, 64, 64))).then(Split("C", "i", "C.i", 2), choices=[tile_choice("C.i", 64, 1)])
    with pytest.raises(ScheduleError, match="'short loops'.*not if, and, max"):
        recorded(sketch, parse_target("short"))


def blocks(rows: int, columns: int) -> tuple[Step, ...]:
    """A product in tiles of matrix registers."""
    split = (Split("c", "i", (rows,), 2), Split("c", "j", (columns,), 2), Split("c", "k", (64,), 2), Split("c", "k_1", (4,), 2))
    return (*split, Reorder("c", ("i_0", "j_0", "k_0", "i_1", "k_1_0", "j_1", "k_1_1")), Tensorize("c", "j_1", "k_1_1", "amx_u8s8"))


@pytest.mark.parametrize(
    ("rows", "columns", "fits"),
    [(32, 32, True), (16, 16, True), (8, 32, True), (4, 32, False), (64, 16, False), (16, 64, False), (32, 24, True), (32, 4, False)],
)
def test_blocks_have_to_fill_and_fit_matrix_registers(rows: int, columns: int, fits: bool) -> None:
    a, b = te.placeholder((64, 64), "uint8", name="a"), te.placeholder((64, 192), "int8", name="b", constant=True)
    loops = Sketch(Dag([a, b, te.nn.matmul(a, b, out_dtype="int32", name="c")])).then(*blocks(rows, columns)).lower_row(())
    assert legal(loops, parse_target("cpu -mcpu=sapphirerapids -threads=1")) == fits


def test_rows_of_an_image_with_a_border_fill_no_block_together() -> None:
    """A tile of 4 by 4 has rows of four, one of 4 by 8 rows of eight; without a border, and as wide as the image, all rows are one run."""
    target = parse_target("cpu -mcpu=sapphirerapids -threads=1")
    assert [legal(tiled_image(convolution(3), *tile).lower_row(()), target) for tile in ((4, 4), (2, 8), (4, 8), (1, 16))] == [False, True, False, True]
    assert [legal(tiled_image(convolution(1), *tile).lower_row(()), target) for tile in ((4, 4), (2, 8), (2, 16), (1, 16))] == [False, True, True, True]


def test_blocks_load_no_operand_that_is_computed_on_the_way() -> None:
    a, b = te.placeholder((64, 64), "uint8", name="a"), te.placeholder((64, 64), "int8", name="b", constant=True)
    shifted = te.compute((64, 64), lambda i, k: te.min(a[i, k], te.const(9, "uint8")), name="shifted")
    product = te.nn.matmul(shifted, b, out_dtype="int32", name="c")
    loops = Sketch(Dag([a, b, product])).then(ComputeInline("shifted"), *blocks(16, 16)).lower_row(())
    assert legal(loops, parse_target("cpu -mcpu=sapphirerapids -threads=1")) is False
