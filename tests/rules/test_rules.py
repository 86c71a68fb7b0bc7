"""What each rule does beyond the reference's workloads, and where it keeps away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.rules.add_rfactor import AddRfactor
from ansor.rules.always_inline import AlwaysInline
from ansor.rules.base import Derived
from ansor.rules.multi_level_tiling import MultiLevelTiling
from ansor.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansor.rules.pack_constants import PackConstants
from ansor.rules.registry import BUILTIN, register, resolve, rule_named
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Root
from ansor.schedule.steps import ComputeAt, ComputeInline, Fuse, Pack, PackInside, Reorder, Split, Unroll
from ansor.search.derive import derive_sketches
from ansor.targets.base import Target, parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -threads=4")


def sketches(tensors: list[Tensor], *rules: str) -> list[Sketch]:
    return derive_sketches(Dag(tensors), rules or TARGET.rules, TARGET)


def conv_relu(*, constant: bool = True, scale: bool = False) -> list[Tensor]:
    data = te.placeholder((1, 8, 10, 10), name="data")
    weight = te.placeholder((16, 8, 3, 3), name="weight", constant=constant)
    factor, shift = te.placeholder((16,), name="factor"), te.placeholder((16,), name="shift")
    conv = te.nn.conv2d(data, weight, name="conv")
    out = te.compute(
        conv.shape, lambda n, c, h, w: te.max(conv[n, c, h, w] * factor[c] + shift[c] if scale else conv[n, c, h, w], 0.0), name="relu"
    )
    return [data, weight, *([factor, shift] if scale else []), out]


# always_inline


def test_a_dear_function_is_inlined_where_it_is_read_once() -> None:
    x = te.placeholder((4, 4), name="x")
    e = te.compute((4, 4), lambda i, j: te.exp(x[i, j]), name="e")
    once = te.compute((4, 4), lambda i, j: e[i, j] + 1.0, name="once")
    twice = te.compute((4, 4), lambda i, j: e[i, j] + e[j, i], name="twice")
    assert sketches([x, once])[0].steps == (ComputeInline("e"),)
    assert sketches([x, twice])[0].steps == ()


def test_outputs_and_reductions_are_not_inlined() -> None:
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")
    z = te.compute((4,), lambda i: y[i] * 2.0, name="z")
    assert list(AlwaysInline().derive(Sketch(Dag([x, y, z])), "y", TARGET)) == []
    assert len(list(AlwaysInline().derive(Sketch(Dag([x, z])), "y", TARGET))) == 1


# pack_constants


def test_constants_are_packed_before_tiling_in_every_sketch() -> None:
    found = sketches(conv_relu())
    assert len(found) == 3
    assert all(Pack("conv", "weight") in sketch.steps for sketch in found)
    assert not any(isinstance(step, Pack) for sketch in sketches(conv_relu(constant=False)) for step in sketch.steps)


def test_output_channels_are_innermost_in_private_tiles_only() -> None:
    level1, level2, root = sketches(conv_relu())
    for sketch in (level1, level2):
        loops = sketch.state["conv"].loops
        assert loops[:4] == ("n_0", "h_0", "w_0", "co_0") and loops[-4:] == ("n_3", "h_3", "w_3", "co_3")
    assert root.state["conv"].loops[-4:] == ("n_3", "co_3", "h_3", "w_3")  # the output is stored with w innermost


@pytest.mark.parametrize("padding", [0, 1])
def test_weights_that_are_given_are_packed_alone_and_vectors_run_along_output_channels(padding: int) -> None:
    data, weight = te.placeholder((1, 16, 16, 16), name="data"), te.placeholder((64, 16, 3, 3), name="weight")
    found = sketches([data, weight, te.nn.conv2d(data, weight, 1, padding, name="conv")])
    alone = [sketch for sketch in found if any(stage.packed.inside == ("weight",) for stage in sketch.state.stages)]
    assert {sketch.state["conv_local"].loops[-1] for sketch in alone if any(stage.name == "conv_local" for stage in sketch.state.stages)} == {"co_3"}


def test_products_are_packed_as_before() -> None:
    """No operand is read in windows: what vectors are filled with, or both."""
    a, b, k = te.placeholder((64, 96), name="A"), te.placeholder((96, 80), name="B"), te.reduce_axis((0, 96), name="k")
    found = sketches([a, b, te.compute((64, 80), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])
    assert {stage.packed.inside for sketch in found for stage in sketch.state.stages if stage.packed.inside} == {("B",), ("B", "A")}


def test_nothing_is_packed_without_reuse() -> None:
    x, b = te.placeholder((4, 8), name="x"), te.placeholder((4, 8), name="b", constant=True)
    dag = Dag([x, b, te.compute((4, 8), lambda i, j: x[i, j] + b[i, j], name="c")])
    assert list(PackConstants().derive(Sketch(dag), "c", TARGET)) == []


def test_a_constant_with_two_readers_is_not_packed() -> None:
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B", constant=True)
    r, s = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((8, 8), lambda i, j: te.sum(c[i, s] * b[s, j], axis=s), name="D")
    assert not any(isinstance(step, Pack) for sketch in sketches([a, b, d]) for step in sketch.steps)


def test_a_kernel_of_one_by_one_is_packed() -> None:
    data, weight = te.placeholder((1, 32, 7, 7), name="data"), te.placeholder((64, 32, 1, 1), name="weight", constant=True)
    found = sketches([data, weight, te.nn.conv2d(data, weight, name="conv")])
    assert found and all(Pack("conv", "weight") in sketch.steps for sketch in found)


def test_the_kernel_of_a_transposed_convolution_is_packed_by_phases() -> None:
    data, weight = te.placeholder((1, 8, 4, 4), name="data"), te.placeholder((8, 16, 4, 4), name="weight", constant=True)
    found = sketches([data, weight, te.nn.conv2d_transpose(data, weight, 2, 1, name="up")])
    assert found and all(Pack("up_phases", "weight") in sketch.steps for sketch in found)


def test_a_constant_that_several_places_share_is_not_packed() -> None:
    x, w = te.placeholder((16, 16), name="x"), te.placeholder((31,), name="w", constant=True)
    k = te.reduce_axis((0, 16), name="k")
    out = te.compute((16, 16), lambda i, j: te.sum(x[i, k] * w[j + k], axis=k), name="out")  # a copy would hold 256 elements
    assert not any(isinstance(step, Pack) for sketch in sketches([x, w, out]) for step in sketch.steps)


def test_output_channels_of_groups_are_innermost_where_many_share_their_data() -> None:
    def innermost(groups: int) -> set[str]:
        data, weight = te.placeholder((1, 32, 9, 9), name="data"), te.placeholder((32, 32 // groups, 3, 3), name="weight", constant=True)
        found = sketches([data, weight, te.nn.conv2d(data, weight, groups=groups, name="conv")])
        return {sketch.state["conv_local"].loops[-1] for sketch in found if any(stage.name == "conv_local" for stage in sketch.state.stages)}

    assert innermost(groups=4) == {"co_3"}  # 8 channels in a row
    assert innermost(groups=16) == {"w_3"}


def turned_product() -> list[Tensor]:
    a, b = te.placeholder((32, 48), name="A"), te.placeholder((48, 40), name="B")
    turned = te.compute((40, 48), lambda j, k: b[k, j], name="turned")
    return [a, b, te.nn.dense(a, turned, name="c")]


def test_a_stage_that_is_packed_stays_whole() -> None:
    packing = [sketch for sketch in sketches(turned_product()) if sketch.state.packed_by("turned")]
    assert packing and all(isinstance(sketch.state["turned"].placement, Root) for sketch in packing)
    with pytest.raises(ScheduleError, match="makes a packed copy; only a stage at root"):
        print(Sketch(Dag(turned_product())).then(PackInside("c", "turned"), ComputeInline("turned")).state)
    with pytest.raises(ScheduleError, match="an input, or a stage at root"):
        print(Sketch(Dag(turned_product())).then(ComputeInline("turned"), PackInside("c", "turned")).state)


# reduce_in_vectors


def product_of_rows(length: int, *, constant: bool = False) -> list[Tensor]:
    a, b = te.placeholder((20, length), name="A"), te.placeholder((24, length), name="B", constant=constant)
    return [a, b, te.nn.dense(a, b, name="c")]


def in_vectors(tensors: list[Tensor]) -> list[Sketch]:
    return [sketch for sketch in sketches(tensors) if any(isinstance(step, Unroll) for step in sketch.steps)]


def test_rows_are_reduced_in_vectors_several_at_once() -> None:
    (sketch,) = in_vectors(product_of_rows(64))
    stage = sketch.state["c"]
    assert stage.loops == ("i_0", "j_0", "i_1", "j_1", "i_2", "j_2", "k") and stage.annotations.unroll == ("i_2", "j_2")


def test_short_constant_or_strided_operands_are_not_reduced_in_vectors() -> None:
    assert in_vectors(product_of_rows(16)) == []
    assert in_vectors(product_of_rows(64, constant=True)) == []
    assert in_vectors(workloads.matmul(64, 64, 64)) == []


# add_rfactor


def test_several_reductions_are_fused_first() -> None:
    x = te.placeholder((4, 6, 8), name="x")
    r, s = te.reduce_axis((0, 6), name="r"), te.reduce_axis((0, 8), name="s")
    dag = Dag([x, te.compute((4,), lambda i: te.sum(x[i, r, s], axis=[r, s]), name="total")])
    first = next(AddRfactor().derive(Sketch(dag), "total", TARGET)).sketch
    assert first.steps[:2] == (Fuse("total", ("r", "s")), Split("total", "r_s_f", "total.rfactor", 2))
    assert first.choices[0].extent == 48


@pytest.mark.parametrize("length", [4, 15, 127])
def test_short_and_uncuttable_reductions_stay(length: int) -> None:
    assert list(AddRfactor().derive(Sketch(Dag(workloads.min_nm(10, length))), "B", TARGET)) == []


# tiling


def test_any_structure_of_levels() -> None:
    dag = Dag(workloads.matmul(8, 8, 8))
    sketch = next(MultiLevelTiling(structure="srs").derive(Sketch(dag), "C", TARGET)).sketch
    assert sketch.steps == (Split("C", "i", "C.i", 2), Split("C", "j", "C.j", 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")))
    with pytest.raises(ScheduleError, match="asked for the tiling structure 'SXR'; write S"):
        next(MultiLevelTiling(structure="SXR").derive(Sketch(dag), "C", TARGET))


def test_axes_that_stay_whole_start_the_innermost_level() -> None:
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r = te.reduce_axis((0, 8), name="k")
    attrs = {"auto_scheduler_no_split_at_inner": ["i"], "auto_scheduler_always_unroll_inner": ["i"]}
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C", attrs=attrs)
    tile, level1, _ = sketches([a, b, c])
    assert tile.state["C"].loops == ("j_0", "j_1", "k_0", "j_2", "k_1", "i", "j_3")
    assert tile.state["C"].annotations.unroll == ("i",)
    assert level1.state["C"].loops == ("j_0", "i", "j_1") and ComputeAt("C_local", "C", "j_0") in level1.steps


def test_a_scale_and_a_shift_do_not_keep_a_convolution_from_being_fused() -> None:
    level1, level2, root = sketches(conv_relu(scale=True))
    assert all(any(step.target == "relu" for step in sketch.steps if isinstance(step, ComputeAt)) for sketch in (level1, level2))
    assert not any(isinstance(step, ComputeAt) for step in root.steps)


def test_only_one_of_two_stages_is_fused_into_a_sum() -> None:
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r, s = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((8, 8), lambda i, j: te.sum(b[i, s] * a[s, j], axis=s), name="D")
    found = sketches([a, b, te.compute((8, 8), lambda i, j: c[i, j] + d[i, j], name="E")])
    for sketch in found:
        inside = [step.stage for step in sketch.steps if isinstance(step, ComputeAt) and step.target == "E"]
        assert len(inside) <= 1
    assert any("C_local" in sketch.state and sketch.state["D"].placement != sketch.state["C"].placement for sketch in found)


def test_an_output_is_never_computed_inside_its_reader() -> None:
    tensors = conv_relu()
    conv = next(t for t in Dag(tensors).stages if t.name == "conv")
    assert conv is not None
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r = te.reduce_axis((0, 8), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    dag = Dag([a, b, c, te.compute((8, 8), lambda i, j: te.max(c[i, j], 0.0), name="D")])
    assert list(MultiLevelTilingWithFusion().derive(Sketch(dag), "C", TARGET)) == []


# the registry


def test_every_built_in_rule_has_a_name_and_a_target_lists_it() -> None:
    listed = {rule.partition("(")[0] for target in (TARGET, parse_target("vta"), parse_target("micro")) for rule in target.rules}
    assert listed == set(BUILTIN)
    assert all(hasattr(rule, "derive") for rule in resolve(BUILTIN))


def test_names_do_not_collide() -> None:
    @dataclass(frozen=True)
    class Mine:
        exclusive: bool = False

        def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
            yield Derived(sketch)

    register("mine_for_the_test")(Mine)
    assert rule_named("mine_for_the_test") == Mine()
    for name in ("mine_for_the_test", "always_inline"):
        with pytest.raises(ScheduleError, match="exists already; choose another name"):
            register(name)(Mine)
    with pytest.raises(ScheduleError, match="asked for sketch rule 'nobody'; the rules are add_cache_write, "):
        rule_named("nobody")


# simplify_const_tensor


def test_a_chain_of_written_out_sums_stays_in_one_tile() -> None:
    """What the second stage reads is computed around its unrolled loop, vectors innermost in both; the text of a few vectors is written out, no more."""
    unrolled = "auto_scheduler_simplify_const_tensor_indices"
    x = te.placeholder((2, 2, 12, 512), name="x")
    first = te.compute(
        (2, 2, 12, 512), lambda i, j, p, c: te.if_then_else(i == 0, x[0, j, p, c] + x[1, j, p, c], x[0, j, p, c] - x[1, j, p, c]), name="first",
        attrs={unrolled: ["i", "j"]},
    )  # fmt: skip
    second = te.compute(
        (4, 12, 512), lambda e, p, c: te.if_then_else(e % 2 == 0, first[e // 2, 0, p, c] + first[e // 2, 1, p, c], first[e // 2, 1, p, c]), name="second",
        attrs={unrolled: ["e"]},
    )  # fmt: skip
    (sketch,) = sketches([x, second])
    assert sketch.state["second"].loops == ("p_0", "c_0", "p_1", "e", "c_1") and sketch.state["second"].annotations.unroll == ("e",)
    assert sketch.state["first"].loops == ("p", "i", "j", "c") and sketch.state["first"].annotations.unroll == ("i", "j")
    assert sketch.state["first"].placement == At("second", "p_1")
    lengths = next(choice.table[:, -1] for choice in sketch.choices if choice.name == "second.c")
    assert max(lengths) == 2 * TARGET.vector_bytes // 4
