"""Store weights in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.questions import needs_tiling, packable_constants
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack
from ansor.targets.base import Target


@register("pack_constants")
@dataclass(frozen=True)
class PackConstants:
    """Reorder constants ahead of time for the stage that reads them, then visit the stage again: its tiling decides the order.

    before   for j_0, k, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:  ... b_packed[j_0, k, j_1]
    """

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if not needs_tiling(state, stage):
            return  # without reuse, no order is worth a copy
        constants = packable_constants(state, stage)
        if not constants:
            return
        yield Derived(sketch.then(*(Pack(stage, name) for name in constants)), revisit=(stage,))
