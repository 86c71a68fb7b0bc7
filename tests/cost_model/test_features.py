"""Feature rows: values known by hand, and a program alone against the same program in a population."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.analytic import estimate
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.feature_table import COLUMN, FEATURES, FEATURES_VERSION, MACHINE_NAMES, WIDTH, table_text
from ansor.cost_model.features import extract
from ansor.cost_model.machine_features import machine_columns
from ansor.ir.dag import Dag
from ansor.schedule.choice import level_choice, tile_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import (
    CacheWrite,
    ComputeAt,
    ComputeInline,
    FollowSplit,
    Fuse,
    Pack,
    Parallel,
    PragmaUnroll,
    Reorder,
    Rfactor,
    Split,
    Step,
    StorageAlign,
    Unroll,
    Vectorize,
)
from ansor.targets.base import parse_target
from ansor.te import nn
from ansor.te.tensor import Tensor

CORE = parse_target("cpu -mcpu=x86-64-v4 -threads=2")
TILED = ("i_0", "j_0", "i_1", "j_1", "k_0", "i_2", "j_2", "k_1", "i_3", "j_3")


def matmul(n: int, m: int, k: int) -> list[Tensor]:
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B", constant=True)
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def tiled_matmul(n: int, m: int, k: int) -> Sketch:
    """Tiles, vectors, parallel loops and an unroll limit, all open."""
    choices = (tile_choice("i", n, 3), tile_choice("j", m, 3), tile_choice("k", k, 1), level_choice("p", (0, 1, 2)), level_choice("u", (0, 16, 512)),
               level_choice("v", (0, 1)))
    return Sketch(Dag(matmul(n, m, k))).then(
        Split("C", "i", "i", 4), Split("C", "j", "j", 4), Split("C", "k", "k", 2), Reorder("C", TILED), Parallel("C", "p"), Vectorize("C", "j_3", "v"),
        Unroll("C", "i_3"), Unroll("C", "k_1"), PragmaUnroll("C", "u"), choices=choices,
    )


def cached_matmul(n: int, m: int, k: int) -> Sketch:
    """A private tile, a packed constant and a copy."""
    choices = (tile_choice("i", n, 3), tile_choice("j", m, 3), tile_choice("k", k, 1), level_choice("p", (0, 1, 2)))
    return Sketch(Dag(matmul(n, m, k))).then(
        CacheWrite("C"), Split("C_local", "i", "i", 4), Split("C_local", "j", "j", 4), Split("C_local", "k", "k", 2), Pack("C_local", "B"),
        Reorder("C_local", TILED), FollowSplit("C", "i", "i", 3), FollowSplit("C", "j", "j", 3),
        Reorder("C", ("i_0", "j_0", "i_1", "j_1", "i_2", "j_2")), ComputeAt("C_local", "C", "j_1"), Parallel("C", "p"), Vectorize("C_local", "j_3"),
        choices=choices,
    )


def padded_convolution(place: str) -> Sketch:
    """3x3 convolution with stride 2, its padding at `place`, and a scale and maximum after it; outer loops fused."""
    data = te.placeholder((1, 4, 12, 12), name="X")
    weight = te.placeholder((8, 4, 3, 3), name="W", constant=True)
    conv = nn.conv2d(data, weight, 2, 1, name="Y")
    scale = te.placeholder((8,), name="S")
    out = te.compute(conv.shape, lambda n, c, h, w: te.max(conv[n, c, h, w] * scale[c], 0.0), name="Z")
    choices = (tile_choice("co", 8, 3), tile_choice("h", 6, 3), tile_choice("w", 6, 3), tile_choice("rc", 4, 1), level_choice("p", (0, 1)))
    steps: list[Step] = [Split("Y", axis, axis, 4) for axis in ("co", "h", "w")]
    steps += [Split("Y", "rc", "rc", 2)]
    steps += [Reorder("Y", ("n", "co_0", "h_0", "w_0", "co_1", "h_1", "w_1", "rc_0", "co_2", "h_2", "w_2", "rc_1", "rh", "rw", "co_3", "h_3", "w_3"))]
    steps += [FollowSplit("Z", "c", "co", 2), FollowSplit("Z", "h", "h", 2), FollowSplit("Z", "w", "w", 2)]
    steps += [Reorder("Z", ("n", "c_0", "h_0", "w_0", "c_1", "h_1", "w_1")), Fuse("Z", ("n", "c_0", "h_0")), ComputeAt("Y", "Z", "w_0")]
    if place == "inline":
        steps.append(ComputeInline("pad"))
    elif place == "inside":
        steps += [ComputeAt("pad", "Y", "rc_0"), StorageAlign("pad", 8, 3)]
    steps += [Parallel("Z", "p"), Vectorize("Y", "w_3")]
    return Sketch(Dag([data, weight, scale, out])).then(*steps, choices=choices)


def factored_sum() -> Sketch:
    """A reduction whose partial results are kept."""
    data = te.placeholder((6, 48), name="A")
    k = te.reduce_axis((0, 48), name="k")
    total = te.compute((6,), lambda i: te.sum(te.exp(data[i, k]), axis=k), name="S")
    steps = (Split("S", "k", "k", 2), Rfactor("S", "k_1", 1), Reorder("S_rf", ("i", "k_0", "k_1")), Vectorize("S_rf", "k_1"))
    return Sketch(Dag([data, total])).then(*steps, choices=(tile_choice("k", 48, 1),))


def gathered() -> Sketch:
    """Rows picked by data."""
    table = te.placeholder((50, 16), name="T")
    picks = te.placeholder((12,), dtype="int32", name="P")
    out = te.compute((12, 16), lambda i, j: table[picks[i], j] + 1.0, name="G")
    choices = (tile_choice("i", 12, 1), tile_choice("j", 16, 1))
    return Sketch(Dag([table, picks, out])).then(
        Split("G", "i", "i", 2), Split("G", "j", "j", 2), Reorder("G", ("i_0", "j_0", "i_1", "j_1")), Fuse("G", ("i_0", "j_0")), choices=choices
    )


def two_readers() -> Sketch:
    """A region read at a tile by one stage and whole by another in some programs."""
    data = te.placeholder((16, 8), name="X")
    mean_axis, square_axis = te.reduce_axis((0, 8), name="r"), te.reduce_axis((0, 8), name="s")
    mean = te.compute((16,), lambda i: te.sum(data[i, mean_axis], axis=mean_axis), name="M")
    square = te.compute((16,), lambda i: te.sum((data[i, square_axis] - mean[i]) * (data[i, square_axis] - mean[i]), axis=square_axis), name="Q")
    out = te.compute((16, 8), lambda i, j: (data[i, j] - mean[i]) * square[i], name="O")
    return Sketch(Dag([data, out])).then(Split("O", "i", "i", 3), ComputeAt("Q", "O", "i_0"), ComputeAt("M", "O", "i_0"), choices=(tile_choice("i", 16, 2),))


def grouped_convolution() -> Sketch:
    """Channels of a group: quotients of tiled loops in an index."""
    data, weight = te.placeholder((1, 8, 6, 6), name="X"), te.placeholder((16, 2, 3, 3), name="W")
    conv = nn.conv2d(data, weight, 1, 1, groups=4, name="Y")
    order = ("n", "co_0", "h", "w", "co_1", "rc", "rh", "rw", "co_2")
    return Sketch(Dag([data, weight, conv])).then(Split("Y", "co", "co", 3), Reorder("Y", order), choices=(tile_choice("co", 16, 2),))


def stencil() -> Sketch:
    """Y[i, j] = X[i, j] + ... + X[i + 4, j], each row in pages of its own, with a loop over i inside that may have an extent of 1."""
    data = te.placeholder((12, 2048), name="X")
    out = te.compute((8, 2048), lambda i, j: sum((data[i + k, j] for k in range(1, 5)), start=data[i, j]), name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), Reorder("Y", ("i_0", "j", "i_1")), choices=(tile_choice("i", 8, 1),))


SKETCHES = {
    "tiled": lambda: tiled_matmul(12, 16, 6),
    "tiled large": lambda: tiled_matmul(512, 512, 512),
    "cached": lambda: cached_matmul(12, 16, 6),
    "cached large": lambda: cached_matmul(512, 512, 512),
    "pad root": lambda: padded_convolution("root"),
    "pad inline": lambda: padded_convolution("inline"),
    "pad inside": lambda: padded_convolution("inside"),
    "rfactor": factored_sum,
    "gather": gathered,
    "two readers": two_readers,
    "groups": grouped_convolution,
    "stencil": stencil,
}
OURS = COLUMN["tile_vectors"]
"""The first column that needs a machine; logarithms of shares may be negative from there on."""


def random_rows(sketch: Sketch, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    generator = np.random.default_rng(7)
    return np.stack([generator.integers(0, size, count) for size in sketch.sizes], axis=1)


@pytest.mark.parametrize("name", SKETCHES)
def test_a_program_and_its_population_agree_bit_for_bit(name: str) -> None:
    sketch = SKETCHES[name]()
    rows = random_rows(sketch, 40)
    together = extract(sketch.lower_rows(rows), len(rows), core=CORE)
    assert together.count == 40 and together.width == WIDTH
    assert np.isfinite(together.rows).all() and (together.rows[:, :OURS] >= 0).all()
    statements = together.lengths()[0]
    for k, row in enumerate(rows.tolist()):
        alone = extract(sketch.lower_row(row), core=CORE).rows
        same = together.rows[k * statements : (k + 1) * statements]
        assert alone.shape == same.shape
        assert alone.tobytes() == same.tobytes(), [FEATURES[c].name for c in np.flatnonzero((alone != same).any(axis=0))]


def test_columns_keep_their_places() -> None:
    assert WIDTH == 194 == len(COLUMN) and FEATURES_VERSION == 8
    starts = {"float_mad": 0, "int_mad": 7, "bool_op": 14, "vec_num": 16, "unroll_num": 27, "parallel_num": 38, "is_gpu": 49, "B0.acc_read": 57,
              "B1.acc_read": 75, "B4.stride": 146, "arith_intensity_curve_0": 147, "alloc_size": 157, "outer_prod": 161, "auto_unroll_max_step": 163,
              "tile_vectors": 164, "pages_of_a_run": 185, "threads": 193}
    assert {name: COLUMN[name] for name in starts} == starts
    assert len(table_text().splitlines()) == WIDTH


def number(row: np.ndarray[tuple[int], np.dtype[np.float32]], name: str) -> float:
    """The feature before it was put on its scale."""
    column = COLUMN[name]
    value = float(row[column])
    return value if FEATURES[column].plain else 2.0**value - 1.0


def check(row: np.ndarray[tuple[int], np.dtype[np.float32]], expected: dict[str, float]) -> None:
    found = {name: number(row, name) for name in expected}
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_known_values_of_a_scheduled_matmul() -> None:
    sketch = Sketch(Dag(matmul(512, 512, 512))).then(
        Split("C", "i", (16,), 2), Split("C", "j", (8,), 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")), Parallel("C", 2), Unroll("C", "k"),
        Vectorize("C", "j_1"), PragmaUnroll("C", 64),
    )
    features = extract(sketch.lower_row([]))
    assert features.rows.shape == (1, WIDTH)
    volume = 512.0**3
    check(features.rows[0], {
        "float_mad": volume, "float_addsub": 0, "float_mul": 0, "int_mul": 0, "int_divmod": 0, "select_op": 0,
        "vec_num": 1, "vec_prod": 8, "vec_len": 8, "vec_type_inner_spatial": 1, "vec_type_none": 0, "vec_type_mixed": 0,
        "unroll_num": 1, "unroll_prod": 512, "unroll_len": 512, "unroll_type_inner_reduce": 1,
        "parallel_num": 2, "parallel_prod": 512 * 512 / 16 / 8, "parallel_len": 64, "parallel_type_mixed": 1, "parallel_type_none": 0,
        "is_gpu": 0, "blockIdx_x_len": 1, "vthread_len": 1,
        "B0.acc_readwrite": 1, "B0.acc_read": 0, "B0.bytes": volume * 4, "B0.unique_bytes": 512 * 512 * 4, "B0.lines": volume / 8, "B0.unique_lines": 512 * 32,
        "B0.reuse_loop": 1, "B0.reuse_serial": 0, "B0.reuse_none": 0, "B0.reuse_dis_iter": 8 * 16, "B0.reuse_dis_bytes": (8 * 16 + 8 + 16) * 4,
        "B0.reuse_ct": 512, "B0.bytes_d_reuse_ct": volume * 4 / 512, "B0.stride": 1,
        "B1.acc_read": 1, "B1.unique_bytes": 512 * 512 * 4, "B1.reuse_dis_iter": 1, "B1.reuse_dis_bytes": 12, "B1.reuse_ct": 8, "B1.stride": 0,
        "B1.lines": volume / 8,
        "B2.acc_read": 1, "B2.unique_bytes": 512 * 512 * 4, "B2.reuse_dis_iter": 8, "B2.reuse_dis_bytes": (8 + 1 + 8) * 4, "B2.reuse_ct": 16, "B2.stride": 1,
        "B3.acc_read": 0, "B3.bytes": 0,
        "alloc_size": 0, "alloc_prod": 0, "alloc_outer_prod": 1, "alloc_inner_prod": volume,
        "outer_prod": volume, "num_loops": 5, "auto_unroll_max_step": 64,
        "arith_intensity_curve_0": math.log2(1 + 2 / 12), "arith_intensity_curve_9": math.log2(1 + 2 * volume / (3 * 512 * 512 * 4)),
    })


def test_known_values_of_a_fused_pair() -> None:
    a = te.placeholder((64, 32), name="A")
    b = te.compute((64, 32), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((64, 32), lambda i, j: b[i, j] + 1.0, name="C")
    program = Dag([a, c])
    producer, consumer = extract(Sketch(program).then(ComputeAt("B", "C", "j")).lower_row([])).rows
    serial = {"reuse_serial": 1, "reuse_dis_iter": 1, "reuse_dis_bytes": 16, "reuse_ct": 1}
    check(producer, {f"B0.{name}": value for name, value in serial.items()})
    check(consumer, {f"B1.{name}": value for name, value in serial.items()})
    check(producer, {"alloc_size": 4, "alloc_prod": 2048, "alloc_outer_prod": 2048, "alloc_inner_prod": 1, "num_loops": 2, "float_mul": 2048})
    check(consumer, {"B0.acc_write": 1, "B0.reuse_none": 1, "B0.reuse_ct": 0, "B0.bytes_d_reuse_ct": 2 * 2048 * 4})

    apart, _ = extract(Sketch(program).lower_row([])).rows
    check(apart, {"B0.reuse_serial": 1, "B0.reuse_dis_iter": 2048, "B0.reuse_dis_bytes": 4 * 2048 * 4, "alloc_size": 8192, "alloc_outer_prod": 1})


def test_positions_of_loops() -> None:
    def row(*steps: Step) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        first: np.ndarray[tuple[int], np.dtype[np.float32]] = extract(Sketch(Dag(matmul(8, 8, 8))).then(*steps).lower_row([])).rows[0]
        return first

    check(row(), {"vec_type_none": 1, "unroll_type_none": 1, "parallel_type_none": 1, "vec_num": 0, "vec_prod": 0})
    check(row(Parallel("C", 1)), {"parallel_type_outer_spatial": 1, "parallel_num": 1})
    check(row(Fuse("C", ("i", "j")), Parallel("C", 1)), {"parallel_type_mixed": 1, "parallel_len": 64})
    check(row(Split("C", "k", (4,), 2), Unroll("C", "k_0")), {"unroll_type_outer_reduce": 1, "unroll_len": 2})
    check(row(Split("C", "k", (2, 2), 3), Unroll("C", "k_1")), {"unroll_type_middle_reduce": 1})
    check(row(Split("C", "k", (2, 1), 3), Unroll("C", "k_1")), {"unroll_type_inner_reduce": 1})  # k_2 has one iteration
    check(row(Reorder("C", ("j", "k", "i")), Vectorize("C", "i")), {"vec_type_outer_spatial": 1, "B0.stride": 8})
    check(row(Split("C", "j", (1,), 2), Reorder("C", ("i", "k", "j_0", "j_1")), Vectorize("C", "j_1")), {"vec_type_none": 1, "vec_num": 0, "num_loops": 3})


def test_more_buffers_than_blocks_keep_those_with_most_loops() -> None:
    narrow = [te.placeholder((4,), name=f"N{k}") for k in range(5)]
    wide = te.placeholder((6, 4), name="W")
    total = te.compute((6, 4), lambda i, j: narrow[0][j] + narrow[1][j] + narrow[2][j] + narrow[3][j] + narrow[4][j] + wide[i, j], name="O")
    row = extract(Sketch(Dag([*narrow, wide, total])).lower_row([])).rows[0]
    assert [number(row, f"B{k}.unique_bytes") for k in range(5)] == pytest.approx([96, 16, 16, 16, 96])
    assert number(row, "float_addsub") == pytest.approx(5 * 24)


def test_cache_line_size_is_a_capability() -> None:
    loops = Sketch(Dag(matmul(16, 64, 8))).lower_row([])
    short, long = (extract(loops, cache_line_bytes=size).rows[0] for size in (32, 128))
    assert number(short, "B0.unique_lines") == pytest.approx(16 * 8) and number(long, "B0.unique_lines") == pytest.approx(16 * 2)


def test_a_sketch_without_choices_is_a_population_of_equals() -> None:
    loops = Sketch(Dag(matmul(4, 4, 4))).lower_row([])
    alone, thrice = extract(loops), extract(loops, 3)
    assert thrice.count == 3 and (thrice.rows == alone.rows).all()


def test_every_column_of_the_machine_has_a_value() -> None:
    (statement,) = statements_of(Sketch(Dag(matmul(8, 8, 8))).lower_row(()))
    found = machine_columns(statement, estimate(statement, CORE), 2.0, CORE)
    assert sorted(found) == sorted(MACHINE_NAMES)


def test_statements_are_described_for_several_cores() -> None:
    """What a statement keeps is kept for one core: another has other caches and vectors."""
    (statement,) = statements_of(Sketch(Dag(matmul(64, 64, 64))).lower_row(()))
    small, (alone,) = parse_target("cpu -mcpu=x86-64-v2 -threads=1"), statements_of(Sketch(Dag(matmul(64, 64, 64))).lower_row(()))
    machine_columns(statement, estimate(statement, CORE), 2.0, CORE)
    assert machine_columns(statement, estimate(statement, small), 2.0, small) == machine_columns(alone, estimate(alone, small), 2.0, small)
