"""Tile a stage around an instruction that computes its innermost part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ansor.ir import access
from ansor.ir.intrinsics import matched
from ansor.rules.base import Derived
from ansor.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, Inner, tile
from ansor.schedule.legality import FEWEST_ROWS
from ansor.schedule.questions import needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage, State
from ansor.targets.base import Target
from ansor.te.fold import walk

FEWEST_GROUPS = 4
"""Groups of a block: with fewer, it is no faster than instructions on vectors."""


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
    """Whether an instruction on matrix registers pays: it loads both operands from memory, in its own order, and takes as long for a small block."""
    a, b = inner.match.a, inner.match.b
    if b.name not in stage.packed.names or (a.name in state and a.name not in stage.packed.names and access.is_strictly_inlineable(a)):
        return False
    assert stage.tensor.compute is not None
    read, other = ({id(node) for read in access.reads(stage.tensor) if read.tensor is one for index in read.indices for node in walk(index)} for one in (a, b))
    rows = prod(axis.extent for axis in stage.tensor.compute.axes if id(axis) in read and id(axis) not in other)
    return rows >= FEWEST_ROWS and inner.groups >= FEWEST_GROUPS
