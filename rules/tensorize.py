"""Tile a stage around an instruction that computes its innermost part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.ir import access
from ansor.ir.intrinsics import matched
from ansor.rules.base import Derived
from ansor.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, Inner, tile
from ansor.schedule.questions import needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage, State
from ansor.targets.base import Target
from ansor.te.expr import Axis
from ansor.te.fold import walk
from ansor.te.tensor import Tensor


@register("tensorize")
@dataclass(frozen=True)
class Tensorize:
    """Split a group off the reduction, tile the rest like the tiling rules, and compute group and vector with the first instruction that fits.

    before   for i, j, k:  c[i, j] += int32(a[i, k]) * int32(b[k, j])
    after    for i_0, j_0, i_1, j_1, k_0_0, i_2, j_2, k_0_1, i_3:  c[..., j_3] = dot(c[..., j_3], a[..., k_1], b[..., j_3, k_1])
    """

    structure: str = STRUCTURE
    uneven: int | None = UNEVEN
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        if not needs_tiling(sketch.state, stage):
            return
        inner = _inner(sketch.state, sketch.state[stage], target, self.uneven)
        if inner is None:
            return
        fused = list(MultiLevelTilingWithFusion(self.structure, uneven=self.uneven).tiled(sketch, stage, inner))
        yield from fused
        compute = sketch.state[stage].tensor.compute
        assert compute is not None
        if any(one.exclusive for one in fused) or inner.match.lanes is not compute.axes[-1]:
            return  # a whole tensor is stored as declared: vectors can be written at once only along its last axis
        yield Derived(tile(sketch, stage, self.structure, uneven=self.uneven, inner=inner).sketch)


def _inner(state: State, stage: Stage, target: Target, uneven: int | None) -> Inner | None:
    """The first intrinsic that fits. An axis that is not split unevenly must consist of whole vectors, at least of the narrowest form."""
    for intrinsic in target.intrinsics:
        found = matched(stage.tensor, intrinsic)
        if found is None:
            continue
        inner = Inner(intrinsic, found)
        if intrinsic.block is not None and not _fills_blocks(state, stage, inner):
            continue
        if found.lanes.extent % min(intrinsic.lanes) == 0 or (uneven is not None and found.lanes.extent >= uneven):
            return inner
    return None


def _fills_blocks(state: State, stage: Stage, inner: Inner) -> bool:
    """Whether an instruction on matrix registers pays: it loads both operands from memory, in its own order, and takes as long for a small block. Rows that are
    neighbours in a tile fill a block together: those of the last axis that is not of columns."""
    compute, block, (a, b) = stage.tensor.compute, inner.intrinsic.block, (inner.match.a, inner.match.b)
    assert compute is not None and block is not None
    if b.name not in stage.packed.names or inner.groups < block.least_groups:
        return False
    if a.name in state and a.name not in stage.packed.names and access.is_strictly_inlineable(a):
        return False
    rows = [axis for axis in compute.axes if axis is not inner.match.lanes and axis.extent > 1]
    return bool(rows) and rows[-1].extent >= block.least_rows and _indexes(stage, a, rows[-1]) and not _indexes(stage, b, rows[-1])


def _indexes(stage: Stage, tensor: Tensor, axis: Axis) -> bool:
    """Whether an axis of a stage is in the index of a tensor that it reads."""
    return any(node is axis for read in access.reads(stage.tensor) if read.tensor is tensor for index in read.indices for node in walk(index))
