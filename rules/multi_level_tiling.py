"""Tile a stage that reuses its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, tile
from ansor.schedule.questions import needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


@register("multi_level_tiling")
@dataclass(frozen=True)
class MultiLevelTiling:
    """Tile the loops for threads, caches and registers; the stage keeps its own nest.

    before   for i, j, k:  c[i, j] += a[i, k] * b[k, j]
    after    for i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3:  ...
    """

    structure: str = STRUCTURE
    uneven: int | None = UNEVEN
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        if needs_tiling(sketch.state, stage):
            yield Derived(tile(sketch, stage, self.structure, uneven=self.uneven).sketch)
