"""Decides how loops run: appends open steps for threads, vectors and unrolling to a finished structure."""

from __future__ import annotations

import math

from ansor.ir import access
from ansor.schedule.choice import Choice, level_choice
from ansor.schedule.machine import Machine
from ansor.schedule.questions import leading_spatial, levels, reduces_neighbours
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Inlined, Root, Stage, State
from ansor.schedule.steps import Parallel, PragmaUnroll, Step, Vectorize

UNROLL_LIMITS = (0, 16, 64, 512)
VECTOR_WEIGHTS = (0.05, 0.95)
ENOUGH_WORK = 16  # above this many iterations per thread, another parallel loop only costs time


def annotated(sketch: Sketch, machine: Machine) -> Sketch:
    """The sketch with its annotations open: parallel levels of root stages, vectors along innermost loops, unrolling of reductions."""
    steps: list[Step] = []
    choices: list[Choice] = []
    for stage in sketch.state.stages:
        if isinstance(stage.placement, Inlined) or not stage.loops:
            continue
        for step, choice in (_parallel(sketch.state, stage, machine), _vectorize(stage), _unroll(stage)):
            if step is not None and choice is not None:
                steps.append(step)
                choices.append(choice)
    return sketch.then(*steps, choices=choices)


Open = tuple[Step, Choice] | tuple[None, None]


def _vectorize(stage: Stage) -> Open:
    innermost = stage.loops[-1]
    if innermost in (*stage.annotations.unroll, *stage.annotations.intrinsics) or (stage.kinds[innermost] != "spatial" and not reduces_neighbours(stage)):
        return None, None
    choice = level_choice(f"{stage.name}.vector", (0, 1), VECTOR_WEIGHTS)
    return Vectorize(stage.name, innermost, choice.name), choice


def _unroll(stage: Stage) -> Open:
    if not access.has_reduction(stage.tensor):
        return None, None
    choice = level_choice(f"{stage.name}.unroll", UNROLL_LIMITS)
    return PragmaUnroll(stage.name, choice.name), choice


def _parallel(state: State, stage: Stage, machine: Machine) -> Open:
    if machine.threads <= 1 or not isinstance(stage.placement, Root):
        return None, None
    loops = _collapsible(state, stage)
    amounts = _tiled_amounts(stage, loops) if stage.relations else _plain_amounts(stage, loops, machine.threads)
    if not amounts:
        return None, None
    values = tuple(sorted(amounts))
    choice = level_choice(f"{stage.name}.parallel", (0, *values), (0.05, *(amounts[value] for value in values)))
    return Parallel(stage.name, choice.name), choice


def _collapsible(state: State, stage: Stage) -> tuple[str, ...]:
    """Leading spatial loops that are perfectly nested, without the innermost loop, which is kept for vectors."""
    loops = leading_spatial(stage)
    if len(loops) == len(stage.loops) > 1:
        loops = loops[:-1]
    attached = [stage.loops.index(other.placement.loop) for other in state.attached(stage.name) if isinstance(other.placement, At)]
    return loops[: min(attached) + 1] if attached else loops


def _plain_amounts(stage: Stage, loops: tuple[str, ...], threads: int) -> dict[int, float]:
    """Amount -> weight. Loops of extent 1 add nothing, nor do more loops beyond ENOUGH_WORK iterations per thread."""
    extents = {axis.name: axis.extent for axis in stage.axes}
    found: dict[int, float] = {}
    degree = 1
    for amount, loop in enumerate(loops, start=1):
        if degree >= ENOUGH_WORK * threads:
            break
        extent = extents.get(loop, 2)
        degree *= extent
        if extent > 1:
            balanced = degree / threads / math.ceil(degree / threads)
            found[amount] = balanced**2 * min(1.0, degree / (2 * threads))
    return found


def _tiled_amounts(stage: Stage, loops: tuple[str, ...]) -> dict[int, float]:
    """Amount -> weight, for whole levels of a tiling. The degree of parallelism depends on the tiles."""
    found: dict[int, float] = {}
    end = 0
    for level, weight in zip(levels(stage), (0.6, 0.3), strict=False):
        end += len(level)
        if end <= len(loops):
            found[end] = weight
    return found or ({len(loops): 0.6} if loops else {})
