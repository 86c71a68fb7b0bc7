"""The numbers of loops: how often each runs, each axis as a sum of loop variables, and the loops that an axis was turned into."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.errors import ScheduleError
from ansor.ir.columns import Int, ceil_div, product, smaller
from ansor.ir.linear import Linear, Quotient, Remainder, Var, of
from ansor.schedule.state import FuseRelation, SplitRelation, Stage, State
from ansor.te.expr import Axis
from ansor.te.size import stand_in

Numbers = Mapping[str, tuple[Int, ...]]
"""Name of a choice -> its numbers: ints for one program, arrays or columns for a population."""


def axis_extent(state: State, stage: Stage, axis: Axis, numbers: Numbers) -> Int:
    """Iterations of a stage's axis: as declared, or those of the loop whose partial results the stage combines."""
    if axis.name not in stage.origins.borrowed:
        return stand_in(axis.extent)
    owner, loop = stage.origins.borrowed[axis.name]
    partial = state[owner]
    # The kept loop's extent depends only on the numbers: a reduction is never cut down to a region.
    return loop_extents(partial, {one.name: stand_in(one.extent) for one in partial.axes}, numbers)[loop]


def loop_extents(stage: Stage, axes: Mapping[str, Int], numbers: Numbers) -> dict[str, Int]:
    """Iterations of every loop that a stage has or had, computed from its axes."""
    extents = dict(axes)
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            extents[relation.fused] = product(extents[parent] for parent in relation.parents)
            continue
        rest = extents[relation.parent]
        given = list(zip(relation.parts[:-1] if relation.outer else relation.parts[1:], _lengths(relation, numbers), strict=True))
        for part, length in given if relation.outer else reversed(given):
            extents[part] = smaller(length, rest)
            rest = ceil_div(rest, extents[part])
        extents[relation.parts[-1 if relation.outer else 0]] = rest
    return extents


def _lengths(relation: SplitRelation, numbers: Numbers) -> tuple[Int, ...]:
    if isinstance(relation.lengths, str) and relation.lengths not in numbers:
        raise ScheduleError(f"loop {relation.parent} is split by {relation.lengths!r}, and the sketch has no choice of that name; "
                            "pass it too: sketch.then(..., choices=[choice])")
    lengths: tuple[Int, ...] = numbers[relation.lengths] if isinstance(relation.lengths, str) else relation.lengths
    if relation.follow:
        lengths = (*lengths[: relation.follow - 1], product(lengths[relation.follow - 1 :]))
    return lengths


def leaves(stage: Stage, loop: str) -> set[str]:
    """The loops that `loop` was turned into."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            return set().union(*(leaves(stage, part) for part in relation.parts))
        if isinstance(relation, FuseRelation) and loop in relation.parents:
            return leaves(stage, relation.fused)
    return {loop}


def axis_values(stage: Stage, loops: dict[str, Var], extents: dict[str, Int]) -> dict[str, Linear]:
    """Every loop and axis as a sum of the stage's loop variables."""
    values: dict[str, Linear] = {loop: of(var) for loop, var in loops.items()}
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation):
            value, stride = Linear(), 1
            terms = []
            for part in reversed(relation.parts):
                terms.append(values[part] * stride)
                stride = stride * extents[part]  # type: ignore[assignment]  # an int or an array
            for term in reversed(terms):
                value = value + term
            values[relation.parent] = value
            continue
        rest = values[relation.fused]
        for k, parent in enumerate(relation.parents):
            inner = product(extents[p] for p in relation.parents[k + 1 :])
            outer = of(Quotient(rest, inner)) if k + 1 < len(relation.parents) else rest
            values[parent] = of(Remainder(outer, extents[parent])) if k > 0 else outer
    return values


def innermost_leaf(stage: Stage, axis: str) -> str:
    """The innermost loop that an axis was turned into."""
    found = leaves(stage, axis)
    return next(loop for loop in reversed(stage.loops) if loop in found)
