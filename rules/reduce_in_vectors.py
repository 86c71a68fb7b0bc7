"""Run vectors along a reduction, for several elements at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.rules.tiling import tile
from ansor.schedule.questions import needs_tiling, packable_constants, reduced_in_memory_order
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Unroll
from ansor.targets.base import Target

STRUCTURE = "SSSR"
"""Spatial (threads), spatial (caches), spatial (registers), and the whole reduction inside: its vectors are summed into elements once, at the end."""


@register("reduce_in_vectors")
@dataclass(frozen=True)
class ReduceInVectors:
    """If every operand is stored in the order of the reduction, load vectors along it: a few elements share them, and nothing has to be reordered.

    before   for i, j, k:  c[i, j] += a[i, k] * b[j, k]
    after    for i_0, j_0, i_1, j_1:
                 for k in 0, 16, ..:  v[0:2, 0:4, 0:16] += a[i, k : k + 16] * b[j, k : k + 16]          (i_2 in 2, j_2 in 4, unrolled)
                 c[i, j] = sum of v[i_2, j_2, 0:16]

    `least`: the length of the innermost reduction from which the saving outweighs the final sums. Constants are reordered ahead of time instead.
    """

    least: int = 32
    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        found = state[stage]
        if not needs_tiling(state, stage) or found.role or found.packed.names or packable_constants(state, stage):
            return
        if not reduced_in_memory_order(found, self.least):
            return
        tiled = tile(sketch, stage, STRUCTURE).sketch
        loops = tiled.state[stage].loops
        inner = [loop for loop in loops if tiled.state[stage].kinds[loop] == "spatial"][-len(found.tensor.shape) :]
        yield Derived(tiled.then(*(Unroll(stage, loop) for loop in inner)))
