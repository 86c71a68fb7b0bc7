"""Copy operands that are read repeatedly into the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.questions import matched_consumer, needs_tiling, packable_operands, reads_in_rows
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import PackInside
from ansor.targets.base import Target


@register("pack_operands")
@dataclass(frozen=True)
class PackOperands:
    """Pack the operand that the innermost output axis traverses, or all operands, in a nest before the stage, then visit the stage again.
    If that operand is read in strides or windows, also try packing only the others.

    before   for i_0, j_0, k, i_1, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:            b_packed[j_0, k, j_1] = b[k, j_0 * 16 + j_1]
             for i_0, j_0, k, i_1, j_1:  ... b_packed[j_0, k, j_1]

    A copy pays where each of its elements is read `reuse` times or more. Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.
    """

    reuse: int = 16
    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if state[stage].packed.inside or not needs_tiling(state, stage):
            return
        if state[stage].role != "cache_write" and matched_consumer(state, stage) is None:
            return  # only a private tile can be computed past the end of the result
        along, others = packable_operands(state, stage, self.reuse)
        if along:  # a computed stage whose elements are broadcast one by one is already stored in a good order
            others = [name for name in others if name not in state]
        ways = [along, along + others] if along and others else [along or others]
        if along and others and not any(reads_in_rows(state, stage, name) for name in along):
            ways.append(others)  # strides and windows fill vectors badly: they run along output channels
        for names in ways:
            if names:
                yield Derived(sketch.then(*(PackInside(stage, name) for name in names)), revisit=(stage,))
