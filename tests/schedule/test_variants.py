"""Loop orders, locations and annotations: what is tried beside each sketch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.schedule.annotate import annotated
from ansor.schedule.choice import Choice
from ansor.schedule.locations import MAX_VARIANTS, location_variants
from ansor.schedule.loop_orders import loop_orders
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Inlined, Root
from ansor.schedule.steps import Fuse, Parallel, PragmaUnroll, Reorder, Split, Vectorize
from ansor.search.derive import derive_sketches
from ansor.targets.base import parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor

ONE, FOUR = parse_target("cpu -mcpu=haswell -threads=1"), parse_target("cpu -mcpu=haswell -threads=4")


def derived(tensors: list[Tensor]) -> list[Sketch]:
    return derive_sketches(Dag(tensors), FOUR.rules, FOUR)


def unpacked(tensors: list[Tensor]) -> list[Sketch]:
    """Without those that pack operands inside the kernel."""
    return [sketch for sketch in derived(tensors) if not any(stage.packed.inside for stage in sketch.state.stages)]


def choice_of(sketch: Sketch, name: str) -> Choice:
    return next(choice for choice in sketch.choices if choice.name == name)


def pooling(layout: str, stride: int) -> list[Tensor]:
    data = te.placeholder((1, 28, 28, 256) if layout == "NHWC" else (1, 256, 28, 28), name="data")
    return [data, te.nn.pool2d(data, 3, stride, layout=layout, name="pooled")]


# loop orders


def test_channels_last_pooling_runs_vectors_along_channels() -> None:
    (only,) = loop_orders(Sketch(Dag(pooling("NHWC", 2))), ONE)
    assert only.state["pooled"].loops == ("n", "h", "w", "c_0", "rh", "rw", "c_1")
    assert only.choices[0].extent == 256


def test_a_short_axis_is_not_cut() -> None:
    x, r = te.placeholder((64, 16), name="x"), te.reduce_axis((0, 64), name="r")
    (only,) = loop_orders(Sketch(Dag([x, te.compute((16,), lambda j: te.sum(x[r, j], axis=r), name="columns")])), ONE)
    assert only.steps == (Reorder("columns", ("r", "j")),)


def test_reading_in_small_strides_is_a_variant_of_its_own() -> None:
    assert len(loop_orders(Sketch(Dag(pooling("NCHW", 1))), ONE)) == 1
    declared, turned = loop_orders(Sketch(Dag(pooling("NCHW", 2))), ONE)
    assert declared.steps == ()
    assert turned.state["pooled"].loops == ("n", "c", "h", "rh", "rw", "w")  # 13 columns: short enough to stay whole


def test_rows_are_left_to_rfactor() -> None:
    (only,) = loop_orders(Sketch(Dag(workloads.min_nm(10, 1024))), ONE)
    assert only.steps == ()


def test_a_single_long_loop_is_cut_for_threads_only() -> None:
    x = te.placeholder((4096,), name="x")
    sketch = Sketch(Dag([x, te.compute((4096,), lambda i: x[i] + 1.0, name="y")]))
    assert loop_orders(sketch, ONE)[0].steps == ()
    assert loop_orders(sketch, FOUR)[0].steps == (Split("y", "i", "y.i", 2),)


def test_winograd_transforms_run_vectors_along_channels() -> None:
    (first, *_) = derived(workloads.conv2d_winograd_nhwc(1, 28, 28, 128, 128, 3, 1, 1))
    (only,) = loop_orders(first, ONE)
    assert only.state["data_pack"].loops == ("p_0", "c_0", "p_1", "eps", "nu", "r_a", "r_b", "c_1")


# locations


def test_a_padding_moves_into_the_convolution() -> None:
    level1, level2, root = unpacked(workloads.conv2d_nchw_bn_relu(1, 14, 14, 8, 8, 3, 1, 1))
    places = [variant.state["pad"].placement for variant in location_variants(level1)]
    assert places == [Root(), At("relu", "i3_0"), At("conv", "w_1"), At("conv", "rw_0")]  # the levels of relu, then those the convolution adds
    places = [variant.state["pad"].placement for variant in location_variants(level2)]
    assert places == [Root(), At("relu", "i3_0"), At("relu", "i3_1"), At("conv", "rw_0")]
    places = [variant.state["pad"].placement for variant in location_variants(root)]
    assert places == [Root(), At("conv", "w_0"), At("conv", "w_1"), At("conv", "rw_0")]


def test_a_padding_of_a_pooling_may_be_inlined() -> None:
    (sketch,) = derived(workloads.max_pool2d(1, 56, 56, 16, 1))
    pool = sketch.state.stages[-1].name
    places = [variant.state["pad"].placement for variant in location_variants(sketch)]
    assert places == [Root(), At(pool, "c"), At(pool, "h"), At(pool, "w"), Inlined()]


def test_the_stages_of_a_softmax_move_into_its_rows() -> None:
    *_, declared = derived(workloads.softmax_nm(64, 128))
    first, rows, *_ = list(location_variants(declared))
    assert first is declared
    *inner, out = rows.state.stages
    assert [stage.placement for stage in inner] == [At(out.name, "i0")] * 3


@pytest.mark.parametrize(
    "tensors", [workloads.softmax_abcd(2, 12, 16, 16), workloads.conv2d_winograd_nhwc(1, 8, 8, 16, 16, 3, 1, 1)], ids=["softmax", "winograd"]
)
def test_variants_are_few_and_distinct(tensors: list[Tensor]) -> None:
    for sketch in derived(tensors):
        variants = list(location_variants(sketch))
        assert variants[0] is sketch and len(variants) <= MAX_VARIANTS
        assert len({variant.name for variant in variants}) == len(variants)


def test_nothing_moves_out_of_a_tiled_stage_or_an_output() -> None:
    for sketch in derived(workloads.double_matmul(16)):
        assert list(location_variants(sketch)) == [sketch]


# annotations


def test_a_tiled_stage_in_a_copy_out_loop() -> None:
    tile, level1, level2 = (annotated(sketch, FOUR) for sketch in unpacked(workloads.matmul(64, 64, 64)))
    assert level1.steps[-4:] == (
        Vectorize("C_local", "j_3", "C_local.vector"),
        PragmaUnroll("C_local", "C_local.unroll"),
        Parallel("C", "C.parallel"),
        Vectorize("C", "j_1", "C.vector"),
    )
    # up to the loop in which the tile is computed; whole levels
    assert choice_of(level1, "C.parallel").table.ravel().tolist() == [0, 2]
    assert choice_of(level2, "C.parallel").table.ravel().tolist() == [0, 2, 4]
    assert choice_of(tile, "C.parallel").table.ravel().tolist() == [0, 2, 4]
    assert choice_of(tile, "C.unroll").table.ravel().tolist() == [0, 16, 64, 512]
    weights = choice_of(tile, "C.vector").weights
    assert weights is not None and weights.tolist() == [0.05, 0.95]


def test_useless_degrees_are_not_offered() -> None:
    x = te.placeholder((1, 64, 56, 56), name="x")
    sketch = annotated(Sketch(Dag([x, te.compute(x.shape, lambda n, c, h, w: x[n, c, h, w] + 1.0, name="y")])), FOUR)
    assert choice_of(sketch, "y.parallel").table.ravel().tolist() == [0, 2]  # one image adds nothing, and 64 channels are enough for 4 threads
    one = annotated(Sketch(Dag([x, te.compute(x.shape, lambda n, c, h, w: x[n, c, h, w] + 1.0, name="y")])), ONE)
    assert [choice.name for choice in one.choices] == ["y.vector"]


def test_reductions_inside_are_unrolled_and_where_they_read_neighbours_vectorised() -> None:
    along = annotated(Sketch(Dag(workloads.min_nm(10, 1024))), ONE)
    assert [type(step) for step in along.steps] == [Vectorize, PragmaUnroll]
    x, r = te.placeholder((1024, 10), name="x"), te.reduce_axis((0, 1024), name="r")
    across = annotated(Sketch(Dag([x, te.compute((10,), lambda i: te.sum(x[r, i], axis=r), name="y")])), ONE)
    assert [type(step) for step in across.steps] == [PragmaUnroll]


@pytest.mark.parametrize(("shape", "read", "fused"), [
    ((4, 7, 7), lambda x, i, r, q: x[i, r, q], True),
    ((4, 7, 7), lambda x, i, r, q: x[i, q, r], False),          # the inner axis moves by 7
    ((4, 13), lambda x, i, r, q: x[i, r + q], False),           # a window: elements overlap
    ((4, 7, 9), lambda x, i, r, q: x[i, r, q], False),          # rows with something in between
])  # fmt: skip
def test_a_block_side_by_side_in_memory_is_reduced_as_one_loop(shape: tuple[int, ...], read: Callable[..., te.Expr], fused: bool) -> None:
    x, r, q = te.placeholder(shape, name="x"), te.reduce_axis((0, 7), name="r"), te.reduce_axis((0, 7), name="q")
    dag = Dag([x, te.compute((4,), lambda i: te.sum(read(x, i, r, q), axis=[r, q]), name="y")])
    (sketch,) = loop_orders(Sketch(dag), ONE)
    assert sketch.steps == ((Fuse("y", ("r", "q")),) if fused else ())
