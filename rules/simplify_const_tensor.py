"""Unroll stages that multiply by small constant matrices, so that the compiler sees the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.choice import Choice, divisors, level_choice, tile_choice
from ansor.schedule.questions import CONST_INDICES, attribute_names, is_untouched
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage, State
from ansor.schedule.steps import ComputeAt, Reorder, Split, Step, Unroll
from ansor.targets.base import Target
from ansor.te.expr import Axis

MOST_VECTORS = 2


@register("simplify_const_tensor")
@dataclass(frozen=True)
class SimplifyConstTensor:
    """Unroll the loops that the declaration lists in its attribute `auto_scheduler_simplify_const_tensor_indices`, and tile the others once.

    before   for x, y, p, c, a, b:  t[x, y, p, c] += d[a, b, p, c] * m[a, x] * m[b, y]
    after    for p_0, c_0, p_1, c_1:  unrolled for x, y, a, b:  ...

    A stage whose only reader was unrolled this way is computed inside it, tile by tile, so that its values stay in registers:

    before   for x, a, p, c:  s[x, a, p, c] = sums of d[., a, p, c]        for x, y, p, c:  t[x, y, p, c] = sums of s[x, ., p, c]
    after    for p_0, c_0, p_1:  unrolled for x, a:  for c_1:  s[...]      unrolled for x, y:  for c_1:  t[...]
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
            return  # a reduction that is not unrolled cannot move outside the outputs
        reader = _written_out_reader(sketch.state, found)
        if reader is not None:
            yield Derived(sketch.then(*_inside(found, unrolled, others, reader)))
            return
        choices: list[Choice] = [_inner_choice(found, axis, axis is others[-1], target) for axis in others]
        steps: list[Step] = [Split(stage, axis.name, choice.name, 2) for axis, choice in zip(others, choices, strict=True)]
        inner = tuple(f"{axis.name}_1" for axis in others)
        around, lanes = (inner, ()) if access.has_reduction(found.tensor) else (inner[:-1], inner[-1:])  # vectors inside the unrolled loops
        order = (*(f"{axis.name}_0" for axis in others), *around, *unrolled, *lanes)
        steps += [Reorder(stage, order), *(Unroll(stage, loop) for loop in unrolled)]
        yield Derived(sketch.then(*steps, choices=choices))


def _written_out_reader(state: State, stage: Stage) -> Stage | None:
    """The only reader of an elementwise stage, if this rule has split and unrolled it."""
    readers = state.readers(stage.name)
    if len(readers) != 1 or state.is_output(stage.name) or access.has_reduction(stage.tensor):
        return None
    reader = readers[0]
    return reader if reader.annotations.unroll and reader.relations and attribute_names(reader.tensor, CONST_INDICES) else None


def _inside(stage: Stage, unrolled: list[str], others: list[Axis], reader: Stage) -> list[Step]:
    order = (*(axis.name for axis in others[:-1]), *unrolled, *(axis.name for axis in others[-1:]))
    around = reader.loops[: min(reader.loops.index(loop) for loop in reader.annotations.unroll)]
    return [Reorder(stage.name, order), *(Unroll(stage.name, loop) for loop in unrolled), ComputeAt(stage.name, reader.name, around[-1])]


def _inner_choice(stage: Stage, axis: Axis, last: bool, target: Target) -> Choice:
    """The inner length of an axis. Unrolled elementwise stages get few vectors side by side, since the code grows with them."""
    if not last or access.has_reduction(stage.tensor):
        return tile_choice(f"{stage.name}.{axis.name}", axis.extent, 1)
    lanes = max(1, target.vector_bytes // 4)
    lengths = [length for length in divisors(axis.extent) if length <= MOST_VECTORS * lanes]
    return level_choice(f"{stage.name}.{axis.name}", tuple(lengths), tuple(length / lengths[-1] for length in lengths))
