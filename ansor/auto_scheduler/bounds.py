"""The extents of a state's loops, where they follow from the place at which a stage is computed."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ansor.auto_scheduler.loop_state import StateObject
from ansor.auto_scheduler.replay import Replayed
from ansor.auto_scheduler.stages import ComputeAtKind, Iterator, Range, Stage


def bounded(state: StateObject, program: Replayed) -> StateObject:
    """The state with the extents that its program has; those of inlined stages stay as they are. Raises ScheduleError where a length is open."""
    stages = [
        stage if stage.op_type == "placeholder" or stage.compute_at == ComputeAtKind.INLINED else _bounded(stage, name, loops, program)
        for stage, name, loops in zip(state.stages, program.names, program.loops, strict=True)
    ]
    return replace(state, structure=replace(state.structure, stages=tuple(stages)))


def _bounded(stage: Stage, name: str, loops: tuple[tuple[str, ...], ...], program: Replayed) -> Stage:
    starts = {label: values.min for label, values in stage.reduced}

    def found(one: Iterator, parts: tuple[str, ...]) -> Iterator:
        return replace(one, range=Range(starts.get(one.label, 0), prod(program.extents[name, loop] for loop in parts)))

    return replace(stage, iters=tuple(map(found, stage.iters, loops)))
