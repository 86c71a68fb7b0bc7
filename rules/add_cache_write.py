"""Give a stage a consumer that it can be computed inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.questions import matched_consumer, needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite
from ansor.targets.base import Target


@register("add_cache_write")
@dataclass(frozen=True)
class AddCacheWrite:
    """Accumulate in a private tile and copy it out once.

    before   for i, j, k:  c[i, j] += a[i, k] * b[k, j]
    after    for i, j, k:  c_local[i, j] += a[i, k] * b[k, j]
             for i, j:     c[i, j] = c_local[i, j]
    """

    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if not needs_tiling(state, stage):
            return
        if matched_consumer(state, stage) is not None or state[stage].role == "cache_write":
            return  # the consumer is already the copy-out loop
        cached = sketch.then(CacheWrite(stage))
        local = cached.state.stages[cached.state.position(stage) - 1]
        yield Derived(cached, revisit=(local.name,))
