"""Inline what costs nothing to recompute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.questions import is_free_to_inline, is_untouched
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeInline
from ansor.targets.base import Target


@register("always_inline")
@dataclass(frozen=True)
class AlwaysInline:
    """Compute cheap elementwise stages where they are read, and expensive ones too if their only reader reads every element once.

    before   for i:  b[i] = a[i] + 1
             for i:  c[i] = b[i] * 2
    after    for i:  c[i] = (a[i] + 1) * 2
    """

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if state.is_output(stage) or not is_untouched(state[stage]):
            return
        tensor = state[stage].tensor
        if access.has_reduction(tensor) or state.packed_by(stage):
            return
        if access.is_strictly_inlineable(tensor) or is_free_to_inline(state, stage):
            yield Derived(sketch.then(ComputeInline(stage)))
