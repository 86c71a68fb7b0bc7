"""Tile a stage and compute it inside the stage that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, Inner, Tiled, tile
from ansor.schedule.questions import matched_consumer, needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage
from ansor.schedule.steps import ComputeAt, FollowSplit, Reorder, Step
from ansor.targets.base import Target


@register("multi_level_tiling_with_fusion")
@dataclass(frozen=True)
class MultiLevelTilingWithFusion:
    """Tile a stage and its elementwise consumer alike, and compute each tile of the stage just before that of the consumer.

    before   for i, j, k:  c[i, j] += a[i, k] * b[k, j]
             for i, j:     d[i, j] = max(c[i, j], 0)
    after    for i_0, j_0:                                                            (level 1)
                 for i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3:  c[...] += ...
                 for i_1, j_1:  d[...] = max(c[...], 0)
    """

    structure: str = STRUCTURE
    levels: tuple[int, ...] = (1, 2)
    uneven: int | None = UNEVEN
    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        yield from self.tiled(sketch, stage)

    def tiled(self, sketch: Sketch, stage: str, inner: Inner | None = None) -> Iterator[Derived]:
        """What the rule derives, with an instruction inside the tiles if `inner` is given."""
        state = sketch.state
        if not needs_tiling(state, stage):
            return
        consumer = matched_consumer(state, stage)
        if consumer is None or not consumer.loops:
            return
        made_to_be_fused = state[stage].role == "cache_write"
        tiled = tile(sketch, stage, self.structure, private=True, uneven=self.uneven, inner=inner)
        for level in self.levels:
            if level < self.structure.upper().count("S"):
                yield Derived(_fused(tiled, stage, consumer, level), exclusive=made_to_be_fused)


def _fused(tiled: Tiled, stage: str, consumer: Stage, level: int) -> Sketch:
    """The tiled stage inside the consumer's loops, after `level` of its levels."""
    loops = consumer.loops
    cut = [(loop, choice) for loop, choice in zip(loops, tiled.choices, strict=True) if choice]
    whole = [loop for loop, choice in zip(loops, tiled.choices, strict=True) if not choice]
    steps: list[Step] = [FollowSplit(consumer.name, loop, choice, level + 1) for loop, choice in cut]
    order = [f"{loop}_{part}" for part in range(level) for loop, _ in cut]
    inner = [*whole, *(f"{loop}_{level}" for loop, _ in cut)]
    if not order:
        return tiled.sketch
    steps += [Reorder(consumer.name, (*order, *inner)), ComputeAt(stage, consumer.name, order[-1])]
    return tiled.sketch.then(*steps)
