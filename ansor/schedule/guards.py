"""Guards keep loops that do not divide evenly inside their region and their tensor. Each says for which rows it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansor.errors import ScheduleError
from ansor.ir.columns import Int, anywhere, surely_somewhere
from ansor.ir.linear import Linear, Var, bounds
from ansor.ir.loops import Guard
from ansor.schedule.state import SplitRelation, Stage


def axis_guards(local: Linear, base: Linear, span: Int, extent: Int) -> list[Guard]:
    """Conditions that keep an axis inside its region and its tensor; each says for which rows it is needed."""
    found = bounds(local)
    assert found is not None
    guards = []
    overshoot = found[1] >= span
    if anywhere(overshoot):
        guards.append(Guard(local, None, span, overshoot))
    whole = bounds(base + local)
    if base.terms or not _is_zero(base.const):
        assert whole is not None
        outside = (whole[0] < 0) | (whole[1] >= extent)
        if anywhere(outside):
            guards.append(Guard(base + local, 0, extent, outside))
    return guards


def inner_guards(stage: Stage, local: dict[str, Linear], extents: dict[str, Int]) -> list[Guard]:
    """Guards for a part that was split again unevenly: it must not run into the next iteration of the part outside it."""
    axes = {axis.name for axis in stage.axes}
    guards = []
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation) or relation.parent in axes:
            continue
        found = bounds(local[relation.parent])
        assert found is not None
        overshoot = found[1] >= extents[relation.parent]
        if anywhere(overshoot):
            guards.append(Guard(local[relation.parent], None, extents[relation.parent], overshoot))
    return guards


def without(guards: list[Guard], var: Var) -> list[Guard]:
    """The same conditions for whole tiles, without `var`."""
    return [replace(guard, value=_without(guard.value, var)) for guard in guards]


def _without(linear: Linear, var: Var) -> Linear:
    return Linear(tuple((atom, coefficient) for atom, coefficient in linear.terms if atom is not var), linear.const)


def check_partial(stage: Stage, local: dict[str, Linear], loops: Mapping[str, Var]) -> None:
    """Check that no partial result of an rfactor is empty: its first element, with the loops that reduce into it at 0, lies inside the axis."""
    kinds = stage.kinds
    reduced = {id(loops[loop]) for loop in stage.loops if kinds[loop] == "reduce"}
    for axis in stage.axes if stage.storage.kept else ():
        first = Linear(tuple((atom, coefficient) for atom, coefficient in local[axis.name].terms if id(atom) not in reduced), local[axis.name].const)
        found = bounds(first)
        if axis.kind == "reduce" and found is not None and surely_somewhere(found[1] >= axis.extent):
            raise ScheduleError(
                f"asked to rfactor stage {stage.name} along axis {axis.name} ({axis.extent}), whose tiles are so uneven that some partial results would "
                "be empty; give lengths that divide"
            )


def _is_zero(value: Int) -> bool:
    return isinstance(value, int) and value == 0
