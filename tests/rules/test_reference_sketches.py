"""Number, order and structure of the sketches of the reference's own tests, with four cores. Each assertion says what its sketch is."""

from __future__ import annotations

import pytest

from ansor.ir.dag import Dag
from ansor.rules.base import SketchRule
from ansor.rules.multi_level_tiling import MultiLevelTiling
from ansor.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Inlined, Root
from ansor.schedule.steps import CacheWrite, ComputeAt, ComputeInline, FollowSplit, Pack, Reorder, Rfactor, Split
from ansor.search.derive import derive_sketches
from ansor.targets.base import parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -threads=4")
EXACT: dict[str, SketchRule] = {"multi_level_tiling_with_fusion": MultiLevelTilingWithFusion(uneven=None), "multi_level_tiling": MultiLevelTiling(uneven=None)}
REFERENCE = tuple(EXACT.get(rule, rule) for rule in TARGET.rules if rule not in ("pack_operands", "reduce_in_vectors"))
"""Our rules without what the reference lacks: packing inside the kernel, vectors along reductions, and tiles that do not divide."""


def sketches(tensors: list[Tensor]) -> list[Sketch]:
    return derive_sketches(Dag(tensors), REFERENCE, TARGET)


def is_tiled(sketch: Sketch, stage: str) -> bool:
    """Loops in the order S S R S R S."""
    found = sketch.state[stage]
    order = "".join("S" if found.kinds[loop] == "spatial" else "R" for loop in found.loops)
    spatial, reduce = len([a for a in found.axes if a.kind == "spatial"]), len([a for a in found.axes if a.kind == "reduce"])
    return order == "S" * 2 * spatial + "R" * reduce + "S" * spatial + "R" * reduce + "S" * spatial


def is_untouched(sketch: Sketch, stage: str) -> bool:
    """Loops as declared, in a nest of its own."""
    found = sketch.state[stage]
    return not found.relations and isinstance(found.placement, Root) and found.loops == tuple(axis.name for axis in found.axes)


def is_cached(sketch: Sketch, stage: str, level: int) -> bool:
    """Accumulated in a private tile that is computed inside the copy-out loops, at the last loop of a level."""
    local = sketch.state[f"{stage}_local"]
    copy = sketch.state[stage]
    rank = copy.tensor.ndim
    at_level = local.placement == At(stage, copy.loops[level * rank - 1])
    return CacheWrite(stage) in sketch.steps and is_tiled(sketch, f"{stage}_local") and at_level and len(copy.loops) == (level + 1) * rank


def rfactor_of(sketch: Sketch, stage: str) -> str:
    """Which part of the reduction is kept: `outer`, `inner`, or `none`."""
    steps = [step for step in sketch.steps if isinstance(step, Rfactor) and step.stage == stage]
    if not steps:
        return "none"
    assert f"{stage}_rf" in sketch.state
    partial = sketch.state[f"{stage}_rf"]
    if steps[0].loop.endswith("_0"):
        return "outer"
    assert partial.loops[-1] == steps[0].loop, "the kept inner part is innermost, for vectors"
    return "inner"


def test_matmul() -> None:
    tile, level1, level2 = sketches(workloads.matmul(512, 512, 512))
    assert tile.steps == (
        Split("C", "i", "C.i", 4),
        Split("C", "j", "C.j", 4),
        Split("C", "k", "C.k", 2),
        Reorder("C", ("i_0", "j_0", "i_1", "j_1", "k_0", "i_2", "j_2", "k_1", "i_3", "j_3")),
    )
    assert [choice.size for choice in tile.choices] == [210, 210, 7]  # the reference's 308,700 tilings
    assert level1.steps == (
        CacheWrite("C"),
        Split("C_local", "i", "C_local.i", 4),
        Split("C_local", "j", "C_local.j", 4),
        Split("C_local", "k", "C_local.k", 2),
        Reorder("C_local", ("i_0", "j_0", "i_1", "j_1", "k_0", "i_2", "j_2", "k_1", "i_3", "j_3")),
        FollowSplit("C", "i", "C_local.i", 2),
        FollowSplit("C", "j", "C_local.j", 2),
        Reorder("C", ("i_0", "j_0", "i_1", "j_1")),
        ComputeAt("C_local", "C", "j_0"),
    )
    assert level2.steps[5:] == (
        FollowSplit("C", "i", "C_local.i", 3),
        FollowSplit("C", "j", "C_local.j", 3),
        Reorder("C", ("i_0", "j_0", "i_1", "j_1", "i_2", "j_2")),
        ComputeAt("C_local", "C", "j_1"),
    )


def test_matmul_with_a_long_reduction() -> None:
    outer, inner, tile, level1, level2 = sketches(workloads.matmul(8, 8, 512))
    assert outer.steps == (Split("C", "k", "C.rfactor", 2), Rfactor("C", "k_0", 2))
    assert inner.steps == (Split("C", "k", "C.rfactor", 2), Rfactor("C", "k_1", 2), Reorder("C_rf", ("i", "j", "k_0", "k_1")))
    assert is_tiled(tile, "C") and len(tile.steps) == 4
    assert is_cached(level1, "C", 1) and is_cached(level2, "C", 2)


def test_two_matmuls() -> None:
    found = sketches(workloads.double_matmul(512))

    def option(sketch: Sketch, stage: str) -> str:
        if f"{stage}_local" not in sketch.state:
            return "tile" if is_tiled(sketch, stage) else "?"
        return "level1" if is_cached(sketch, stage, 1) else "level2" if is_cached(sketch, stage, 2) else "?"

    assert [(option(sketch, "E"), option(sketch, "D")) for sketch in found] == [
        ("tile", "tile"),  # fewest steps first
        ("level1", "tile"),
        ("level2", "tile"),
        ("tile", "level1"),
        ("tile", "level2"),
        ("level1", "level1"),
        ("level1", "level2"),
        ("level2", "level1"),
        ("level2", "level2"),
    ]


def test_convolution_with_batch_norm_and_relu() -> None:
    level1, level2, root = sketches(workloads.conv2d_nchw_bn_relu(1, 56, 56, 512, 512, 3, 1, 1))
    for sketch in (level1, level2, root):
        assert sketch.steps[:3] == (ComputeInline("Bn_add"), ComputeInline("Bn_mul"), ComputeInline("Bias_add"))
        assert is_tiled(sketch, "conv")
        assert is_untouched(sketch, "pad")  # it chooses between values: not worth repeating
    # the convolution's tile is computed inside relu's loops, after one level of them, after two
    assert level1.state["conv"].placement == At("relu", level1.state["relu"].loops[3]) and len(level1.state["relu"].loops) == 8
    assert level2.state["conv"].placement == At("relu", level2.state["relu"].loops[7]) and len(level2.state["relu"].loops) == 12
    # the convolution keeps a nest of its own
    assert root.state["conv"].placement == Root() and is_untouched(root, "relu")


def test_max_pooling() -> None:
    (only,) = sketches(workloads.max_pool2d(1, 56, 56, 512, 1))
    assert only.steps == ()


def test_row_minimum() -> None:
    outer, inner, declared = sketches(workloads.min_nm(10, 1024))
    assert outer.steps == (Split("B", "k", "B.rfactor", 2), Rfactor("B", "k_0", 1))
    assert inner.steps == (Split("B", "k", "B.rfactor", 2), Rfactor("B", "k_1", 1), Reorder("B_rf", ("i", "k_0", "k_1")))
    assert declared.steps == ()


@pytest.mark.parametrize("tensors", [workloads.softmax_nm(1, 1024), workloads.softmax_abcd(1, 12, 128, 128)], ids=["nm", "abcd"])
def test_softmax(tensors: list[Tensor]) -> None:
    found = sketches(tensors)
    greatest, _, total, _ = (tensor.name for tensor in Dag(tensors).stages if not tensor.is_placeholder)
    options = ("outer", "inner", "none")
    assert [(rfactor_of(s, total), rfactor_of(s, greatest)) for s in found] == [(i, j) for i in options for j in options]
    assert found[8].steps == ()


def test_winograd() -> None:
    tile, level1, level2 = sketches(workloads.conv2d_winograd_nhwc(1, 28, 28, 128, 128, 3, 1, 1))
    for sketch in (tile, level1, level2):
        state = sketch.state
        assert is_untouched(sketch, "data_pad") and is_untouched(sketch, "input_tile") and is_untouched(sketch, "conv2d_winograd")
        assert state["A"].placement == Inlined() and state["B"].placement == Inlined()  # the constant matrices
        for stage in ("data_pack", "inverse"):
            assert state[stage].loops[:4] == ("p_0", "c_0", "p_1", "c_1")  # two levels of what is not unrolled
            assert state[stage].annotations.unroll == state[stage].loops[4:] and len(state[stage].loops) == 8
        assert Pack("bgemm", "weight") in sketch.steps  # ours: the weight is a constant
    assert is_tiled(tile, "bgemm")
    assert is_cached(level1, "bgemm", 1)
    assert is_cached(level2, "bgemm", 2)


def test_sum_to_rank_zero() -> None:
    outer, inner, declared = sketches(workloads.zero_rank_reduce(128))
    assert (rfactor_of(outer, "B"), rfactor_of(inner, "B")) == ("outer", "inner")
    assert declared.steps == ()


@pytest.mark.parametrize("name", workloads.PAPER_OPERATORS)
def test_the_operators_of_the_paper_have_three_sketches(name: str) -> None:
    function, args = workloads.PAPER_OPERATORS[name]
    assert len(sketches(function(*args))) == 3
