"""Unroll stages that multiply with small constant matrices, so that the compiler computes with the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.choice import Choice, tile_choice
from ansor.schedule.questions import CONST_INDICES, attribute_names, is_untouched
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder, Split, Step, Unroll
from ansor.targets.base import Target


@register("simplify_const_tensor")
@dataclass(frozen=True)
class SimplifyConstTensor:
    """Write out the loops that the declaration names in its attribute `auto_scheduler_simplify_const_tensor_indices`, tile the others once.

    before   for x, y, p, c, a, b:  t[x, y, p, c] += d[a, b, p, c] * m[a, x] * m[b, y]
    after    for p_0, c_0, p_1, c_1:  unrolled for x, y, a, b:  ...
    """

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        found = sketch.state[stage]
        named = attribute_names(found.tensor, CONST_INDICES)
        if not named or not is_untouched(found):
            return
        unrolled = [loop for loop in found.loops if loop in named]
        others = [axis for axis in found.axes if axis.name not in named]
        if any(axis.kind != "spatial" for axis in others):
            return  # a reduction that stays a loop cannot be moved outside the outputs
        choices: list[Choice] = [tile_choice(f"{stage}.{axis.name}", axis.extent, 1) for axis in others]
        steps: list[Step] = [Split(stage, axis.name, choice.name, 2) for axis, choice in zip(others, choices, strict=True)]
        order = (*(f"{axis.name}_0" for axis in others), *(f"{axis.name}_1" for axis in others), *unrolled)
        steps += [Reorder(stage, order), *(Unroll(stage, loop) for loop in unrolled)]
        yield Derived(sketch.then(*steps, choices=choices))
