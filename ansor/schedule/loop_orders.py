"""Loop orders of stages that no tiling rule changed: a spatial loop innermost for vectors, and an outer one for threads.

They are chosen before locations and annotations, because loops with a stage computed inside cannot change any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansor.ir import access
from ansor.schedule.choice import Choice, tile_choice
from ansor.schedule.machine import Machine
from ansor.schedule.questions import CONST_INDICES, attribute_names, is_untouched, reduces_neighbours
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Inlined, Root, Stage
from ansor.schedule.steps import Fuse, Reorder, Split, Step
from ansor.te.expr import Axis
from ansor.te.tensor import Read

MAX_STEP = 4  # the largest distance between lanes, in elements, at which gathering still pays
MIN_SPLIT = 128  # a loop of fewer elements is not worth splitting for threads
INNER_VECTORS = 4  # a loop of at most this many accumulators is not split


def loop_orders(sketch: Sketch, machine: Machine) -> list[Sketch]:
    """The sketch with its untiled stages ready for vectors and threads; where stages could only read in strides, also a variant with those reordered."""
    ready = sketch
    strided = []
    for stage in sketch.state.stages:
        reach = _reach(stage)
        if reach == 1 or _is_written_out(stage):
            ready = _vector_inside(ready, stage, machine)
        elif reach is not None:
            strided.append(stage)
        elif _reduces_a_block(stage):
            ready = ready.then(Fuse(stage.name, tuple(loop for loop in stage.loops if stage.kinds[loop] == "reduce")))
    turned = ready
    for stage in strided:
        turned = _vector_inside(turned, stage, machine)
    variants = [ready, turned] if strided else [ready]
    return [_cut_for_threads(variant, machine) for variant in variants]


def _is_written_out(stage: Stage) -> bool:
    """True for a stage that multiplies by constants: its small loops are all unrolled, inside its tiled loops."""
    return bool(stage.annotations.unroll) and bool(attribute_names(stage.tensor, CONST_INDICES)) and isinstance(stage.placement, Root)


def _vector_axis(stage: Stage) -> Axis | None:
    """The last spatial axis with more than one element."""
    assert stage.tensor.compute is not None
    axes = [axis for axis in stage.tensor.compute.axes if axis.extent > 1]
    return axes[-1] if axes else None


def _reach(stage: Stage) -> int | None:
    """The longest memory step between neighbours along the vector axis of an untouched reduction; None when vectors along it make no sense."""
    if not is_untouched(stage) or not access.has_reduction(stage.tensor) or access.needs_multi_level_tiling(stage.tensor):
        return None
    axis = _vector_axis(stage)
    if axis is None:
        return None
    steps = [access.memory_step(read, axis) for read in access.reads(stage.tensor)]
    reach = max((abs(step) if step is not None else math.inf for step in steps), default=0)
    return int(reach) if 1 <= reach <= MAX_STEP else None


def _reduces_a_block(stage: Stage) -> bool:
    """True for an untouched reduction over several axes that are contiguous in memory: as one loop it fills longer vectors.

    before   for c, ry in 7, rx in 7:  s[c] += x[c, ry, rx]
    after    for c, r in 49:           s[c] += x[c, r / 7, r % 7]
    """
    assert stage.tensor.compute is not None
    axes = stage.tensor.compute.reduce_axes
    if len(axes) < 2 or not is_untouched(stage) or access.needs_multi_level_tiling(stage.tensor) or not reduces_neighbours(stage):
        return False
    pairs = list(zip(axes, axes[1:], strict=False))
    return all(
        access.memory_step(read, outer) == inner.extent * (access.memory_step(read, inner) or 0) and _is_whole(read, axes)
        for read in access.reads(stage.tensor)
        for outer, inner in pairs
    )


def _is_whole(read: Read, axes: Sequence[Axis]) -> bool:
    """True when every reduced axis is an index by itself, not part of a window over a longer dimension, or no reduced axis moves the read."""
    return all(any(index is axis for index in read.indices) for axis in axes) or not any(access.memory_step(read, axis) for axis in axes)


def _vector_inside(sketch: Sketch, stage: Stage, machine: Machine) -> Sketch:
    """Move the vector axis innermost; split a long one first, so that few accumulators are held at a time.

    before   for n, h, w, c, ry, rx
    after    for n, h, w, c_0, ry, rx, c_1
    """
    axis = _vector_axis(stage)
    if axis is None:
        return sketch
    if stage.relations:
        inner = f"{axis.name}_1"
        if inner not in stage.loops[:-1]:
            return sketch  # there is none, or it is already innermost
        return sketch.then(Reorder(stage.name, (*(loop for loop in stage.loops if loop != inner), inner)))
    steps: list[Step] = []
    choices: list[Choice] = []
    outer: tuple[str, ...] = ()
    inner = axis.name
    if axis.extent * _bytes(stage) > INNER_VECTORS * machine.vector_bytes:
        choice = tile_choice(f"{stage.name}.{axis.name}", axis.extent, 1)
        choices.append(choice)
        steps.append(Split(stage.name, axis.name, choice.name, 2))
        outer, inner = (f"{axis.name}_0",), f"{axis.name}_1"
    order = tuple(part for loop in stage.loops for part in (outer if loop == axis.name else (loop,)))
    return sketch.then(*steps, Reorder(stage.name, (*order, inner)), choices=choices)


def _bytes(stage: Stage) -> int:
    digits = "".join(c for c in stage.tensor.dtype if c.isdigit())
    return int(digits) // 8 if digits else 1


def _cut_for_threads(sketch: Sketch, machine: Machine) -> Sketch:
    """Split the last spatial loop of untouched stages whose outer loops are too short for the threads.

    before   for i in 4096
    after    for i_0 in 64:  for i_1 in 64
    """
    if machine.threads <= 1:
        return sketch
    for stage in sketch.state.stages:
        if not is_untouched(stage) or isinstance(stage.placement, Inlined) or access.needs_multi_level_tiling(stage.tensor):
            continue
        assert stage.tensor.compute is not None
        axes = stage.tensor.compute.axes
        if not axes or axes[-1].extent < MIN_SPLIT or math.prod(axis.extent for axis in axes[:-1]) >= machine.threads:
            continue
        choice = tile_choice(f"{stage.name}.{axes[-1].name}", axes[-1].extent, 1)
        if choice.size > 1:
            sketch = sketch.then(Split(stage.name, axes[-1].name, choice.name, 2), choices=[choice])
    return sketch
