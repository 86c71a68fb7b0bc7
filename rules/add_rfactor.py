"""Turn part of a long reduction into independent work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.choice import tile_choice
from ansor.schedule.questions import needs_rfactor
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Fuse, Reorder, Rfactor, Split
from ansor.targets.base import Target


@register("add_rfactor")
@dataclass(frozen=True)
class AddRfactor:
    """Store partial results of the outer part of a reduction (work for threads), or of its inner part (work for vectors).

    before   for i:  for k:  c[i] += a[i, k]
    after    for i:  for k_0:  for k_1:  c_rf[i, k_0] += a[i, k]             (outer)
             for i:  for k_0:  c[i] += c_rf[i, k_0]
    or       for i:  for k_0:  for k_1:  c_rf[i, k_1] += a[i, k]             (inner)
             for i:  for k_1:  c[i] += c_rf[i, k_1]
    """

    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if not needs_rfactor(state, stage, target.threads):
            return
        tensor = state[stage].tensor
        choice = tile_choice(f"{stage}.rfactor", access.reduce_length(tensor), 1)
        if choice.size == 1:
            return  # a length without small divisors cannot be split
        assert tensor.compute is not None
        names = tuple(axis.name for axis in tensor.compute.reduce_axes)
        if len(names) > 1:
            sketch = sketch.then(Fuse(stage, names))
        whole = sketch.state[stage].loops[-1]
        cut = sketch.then(Split(stage, whole, choice.name, 2), choices=[choice])
        outer, inner = f"{whole}_0", f"{whole}_1"
        position = tensor.ndim
        yield Derived(cut.then(Rfactor(stage, outer, position)))
        kept_inside = cut.then(Rfactor(stage, inner, position))
        partial = kept_inside.state.stages[kept_inside.state.position(stage) - 1]
        spatial = partial.loops[:position]
        yield Derived(kept_inside.then(Reorder(partial.name, (*spatial, outer, inner))))
