"""Places the stages of a state, and computes the extents of all loops by lowering the result once, without annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from ansor.compat.auto_scheduler.stages import ComputeAtKind, IteratorKind
from ansor.compat.auto_scheduler.structure import StateObject
from ansor.errors import ScheduleError
from ansor.ir.loops import Loops, stores
from ansor.schedule import steps as ours
from ansor.schedule.sketch import Sketch

Extents = Mapping[tuple[str, str], int]
"""(our stage, our loop) -> iterations."""


def with_reductions_fused(structure: StateObject) -> StateObject:
    """Fuse every fused reduction into a single loop, which fills longer vectors."""
    for number, stage in enumerate(structure.stages):
        for which, one in enumerate(stage.iters):
            if len(one.loops) > 1 and one.iter_kind == IteratorKind.REDUCTION:
                structure = structure.as_one_loop(number, which)
    return structure


def extents(structure: StateObject) -> Extents:
    """The extents of all loops. Raises ScheduleError if a length is open."""
    structure.check()
    for number in structure.computed.values():
        structure = structure.in_order(number)
    found = structure.then(*places(structure))
    found.check()
    return extents_of(found.sketch, lowered(found.sketch))


def places(structure: StateObject) -> Iterator[ours.Step]:
    """Our steps that place the stages, consumers first: a stage can only be placed inside a reader that is placed already."""
    numbers = structure.computed
    for name in [stage.name for stage in reversed(structure.sketch.state.stages)]:
        place = structure.place(numbers[name])
        if structure.stages[numbers[name]].compute_at == ComputeAtKind.INLINED:
            yield ours.ComputeInline(name)
        elif place is not None:
            target = structure.stages[place[0]]
            loops = [loop for one in target.iters[: place[1] + 1] for loop in one.loops]
            if not loops:
                raise ScheduleError(f"asked to compute stage {name} in a loop of one iteration around stage {target.ours}; compute it at root")
            yield ours.ComputeAt(name, target.ours, loops[-1])


def lowered(sketch: Sketch) -> Loops:
    """The loops of a program. Raises ScheduleError if a length is open."""
    if sketch.choices:
        names = ", ".join(choice.name for choice in sketch.choices)
        raise ScheduleError(f"asked for the loops of a state with open lengths ({names}); fill them first")
    return sketch.lower_row(())


def extents_of(sketch: Sketch, loops: Loops) -> Extents:
    """The extents of a program's loops."""
    found: dict[str, list[int]] = {}
    for loop in dict.fromkeys(loop for path, _ in stores(loops.body) for loop in path):
        found.setdefault(loop.stage, []).append(cast(int, loop.var.extent))
    return {(stage.name, loop): extent for stage in sketch.state.stages for loop, extent in zip(stage.loops, found.get(stage.name, []), strict=False)}
