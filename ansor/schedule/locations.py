"""Where untiled stages are computed: in their own nest, inside a loop of the stage that reads them, or again at each use."""

from __future__ import annotations

from collections.abc import Iterator

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.schedule.questions import CONST_INDICES, attribute_names, is_follower, leading_spatial, levels
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Root, SplitRelation, Stage, State
from ansor.schedule.steps import ComputeAt, ComputeInline, Step

MAX_VARIANTS = 6
Place = tuple[str, str]
"""A stage and one of its loops."""


def location_variants(sketch: Sketch) -> Iterator[Sketch]:
    """A few sketches that differ in where stages are computed; the given one, with everything at root, comes first.

    First all movable stages move together: outermost, next, ..., innermost. Then each moves alone, up to MAX_VARIANTS sketches. Each sketch is built on
    demand.
    """
    yield sketch
    known = {sketch.name}
    for variant in _variants(sketch):
        if variant.name in known:
            continue
        known.add(variant.name)
        yield variant
        if len(known) == MAX_VARIANTS:
            return


def _variants(sketch: Sketch) -> Iterator[Sketch]:
    """All variants besides the sketch itself, some of them repeatedly."""
    movable = [stage.name for stage in reversed(sketch.state.stages) if is_movable(sketch.state, stage)]
    depth = max((len(_steps(sketch.state, name)) for name in movable), default=0)
    for k in (*range(depth), -1):
        yield _moved(sketch, movable, k)
    if len(movable) > 1:
        yield from (_moved(sketch, [name], k) for k in range(depth) for name in movable)


def is_movable(state: State, stage: Stage) -> bool:
    """True for a stage at root that is not an output, is not packed or tiled for reuse, and does not follow another stage's tiles to write them out."""
    if not isinstance(stage.placement, Root) or state.is_output(stage.name) or not state.consumers(stage.name) or state.packed_by(stage.name):
        return False
    if stage.role in ("cache_write", "cache_read") or is_follower(stage) or attribute_names(stage.tensor, CONST_INDICES):
        return False
    return not access.needs_multi_level_tiling(stage.tensor)


def _moved(sketch: Sketch, names: list[str], k: int) -> Sketch:
    """Move each of the stages, consumers first, to its k-th place (its last when it has fewer)."""
    for name in names:
        steps = _steps(sketch.state, name)
        if steps:
            sketch = sketch.then(steps[min(k, len(steps) - 1)])
    return sketch


def _steps(state: State, name: str) -> list[Step]:
    """The ways to move a stage away from root, outermost first; inlining last."""
    found: list[Step] = []
    for target, loop in _places(state, name):
        step = ComputeAt(name, target, loop)
        if _applies(step, state):
            found.append(step)
    if _is_cheap_inline(state, name):
        found.append(ComputeInline(name))
    return found


def _applies(step: Step, state: State) -> bool:
    try:
        step.apply(state)
    except ScheduleError:
        return False
    return True


def _is_cheap_inline(state: State, name: str) -> bool:
    """True for a copy or padding read by untiled stages: the test costs less than writing and reading memory."""
    tensor = state[name].tensor
    if access.has_reduction(tensor) or access.has_expensive_call(tensor) or state.attached(name):
        return False
    return all(not any(isinstance(r, SplitRelation) for r in stage.relations) and not stage.role for stage in state.consumers(name))


def _places(state: State, name: str) -> list[Place]:
    """Loops around every reader in which a stage is worth computing, outermost first."""
    chains = [_around(state, consumer) for consumer in state.consumers(name)]
    shared = [place for place in chains[0] if all(place in chain for chain in chains[1:])]
    return [place for place in shared if place[0] != name]


def _around(state: State, stage: Stage) -> list[Place]:
    """The useful loops around a stage: those of the stages it is computed in, then its own."""
    own = _useful_loops(stage)
    if not isinstance(stage.placement, At):
        return [(stage.name, loop) for loop in own]
    target = state[stage.placement.stage]
    last = target.loops.index(stage.placement.loop)
    outer = [place for place in _around(state, target) if place[0] != target.name or target.loops.index(place[1]) <= last]
    taken = _levels_taken(target, stage.placement.loop)
    inner = {loop for level in levels(stage)[taken:] for loop in level} if _is_cut(stage) else set(own)
    return outer + [(stage.name, loop) for loop in own if loop in inner]


def _levels_taken(target: Stage, loop: str) -> int:
    """How many tiling levels lie outside `loop`, and so have extent 1 in a stage computed there."""
    return next(k + 1 for k, level in enumerate(levels(target)) if loop in level)


def _is_cut(stage: Stage) -> bool:
    return any(isinstance(relation, SplitRelation) for relation in stage.relations)


def _useful_loops(stage: Stage) -> list[str]:
    """The loops of a stage inside which another stage may be computed.

    Tiled: the last loop of each level up to the first reduction level, never in unrolled loops or the register tile.
    Untiled: every spatial loop with more than one iteration, before the reduction and outside the vectors.
    """
    if _is_cut(stage) and (access.needs_multi_level_tiling(stage.tensor) or is_follower(stage) or stage.annotations.unroll):
        return _level_ends(stage)
    extents = {axis.name: axis.extent for axis in stage.axes}
    loops = leading_spatial(stage)
    if len(loops) == len(stage.loops):
        loops = loops[:-1]
    return [loop for loop in loops if extents.get(loop, 2) > 1]


def _level_ends(stage: Stage) -> list[str]:
    found: list[str] = []
    groups = levels(stage)
    for group in groups[:-1]:
        if any(loop in stage.annotations.unroll for loop in group):
            break
        found.append(group[-1])
        if stage.kinds[group[-1]] == "reduce":
            break
    return found
