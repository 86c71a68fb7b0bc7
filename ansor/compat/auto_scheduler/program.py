"""Builds the program of a state: after our steps that make stages and loops (`transform`), those that place stages and annotate loops.

    CA, CI, CR     ComputeAt, ComputeInline
    AN, PR         Parallel of all outermost loops that were fused into one; Vectorize of the innermost of them; Unroll; PragmaUnroll

Leaves out and notes whatever has no counterpart but does not change results, such as a parallel loop inside a serial one. Raises
ScheduleError if the program would be a different one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.layout import packing_steps
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption
from ansor.compat.auto_scheduler.placed import Extents, extents, extents_of, lowered, places, with_reductions_fused
from ansor.compat.auto_scheduler.stages import ComputeAtKind, IteratorKind, Range, Stage
from ansor.compat.auto_scheduler.stages import Iterator as Loop
from ansor.compat.auto_scheduler.steps import ANNOTATIONS, IteratorAnnotation
from ansor.compat.auto_scheduler.structure import StateObject
from ansor.errors import ScheduleError
from ansor.ir.loops import Loops
from ansor.schedule import steps as ours
from ansor.schedule.legality import MAX_STATEMENTS
from ansor.schedule.sketch import Sketch

_logger = logging.getLogger("auto_scheduler")


@dataclass(frozen=True, eq=False)
class Program:
    """The program of a state. stages: their iterators hold the corresponding loops of ours; notes: sentences on what was left out."""

    sketch: Sketch
    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()

    def warn(self) -> None:
        """Log what was left out."""
        for note in self.notes:
            _logger.warning(note)

    @cached_property
    def lowered(self) -> Loops:
        """The program's loops. Raises ScheduleError if a length is open."""
        return lowered(self.sketch)

    def bounded(self, state: StateObject) -> StateObject:
        """The state with the program's extents; inlined stages keep theirs. Raises ScheduleError if a length is open."""
        found = extents_of(self.sketch, self.lowered)
        stages = tuple(stage if stage.compute_at == ComputeAtKind.INLINED else _bounded(stage, found) for stage in self.stages)
        return replace(state, stages=stages)


def _bounded(stage: Stage, found: Extents) -> Stage:
    starts = {label: values.min for label, values in stage.reduced}
    ranges = [Range(starts.get(one.label, 0), prod(found[stage.ours, loop] for loop in one.loops)) for one in stage.iters]
    return replace(stage, iters=tuple(replace(one, range=values) for one, values in zip(stage.iters, ranges, strict=True)))


def program_of(dag: Declaration, state: StateObject, layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.NO_REWRITE) -> Program:
    """The program of a state. Raises ScheduleError if no processor can run it."""
    state.check()
    for stage in state.stages:
        _check_processor(stage)
    ending = _FinalSteps(with_reductions_fused(state))
    placed = ending.placed()
    running = placed.then(*ending.annotations())
    packed = running.then(*packing_steps(dag, running.sketch.state, layout_rewrite))
    packed.check()
    return Program(packed.sketch, packed.stages, tuple(dict.fromkeys((*packed.notes, *ending.notes))))


def _check_processor(stage: Stage) -> None:
    for one in stage.iters:
        if one.annotation > IteratorAnnotation.PARALLEL:
            raise ScheduleError(f"asked for the program of a state whose loop {'/'.join(one.loops)} of stage {stage.ours} is {ANNOTATIONS[one.annotation]}, "
                                f"which processors do not have; use a state for llvm")  # fmt: skip


class _FinalSteps:
    """The steps at the end of a program. notes: sentences on what was left out."""

    def __init__(self, structure: StateObject) -> None:
        structure.check()
        self.structure = structure
        self.notes: list[str] = []
        self.stages = [stage for stage in structure.stages if stage.op_type == "compute"]
        self.vectors = self._vectors()

    def placed(self) -> StateObject:
        """The state with loops in order, vectorized loops innermost, and stages placed."""
        structure = self.structure
        for stage in self.stages:
            vector = self.vectors.get(stage.ours)
            order = stage.loops if vector is None else (*(loop for loop in stage.loops if loop != vector), vector)
            if structure.refused or structure.sketch.state[stage.ours].loops != order:
                structure = structure.then(ours.Reorder(stage.ours, order))
        found = structure.then(*places(structure))
        found.check()
        return found

    @cached_property
    def _extents(self) -> Extents:
        return extents(self.structure)

    def _iterations(self, stage: Stage, loops: Sequence[str]) -> int | None:
        """The product of these loops' iterations; None if a length is open."""
        return None if self.structure.sketch.choices else prod(self._extents[stage.ours, loop] for loop in loops)

    def _vectors(self) -> dict[str, str]:
        """Our stage -> its vectorized loop, which becomes the innermost."""
        marked = [(stage, place) for stage in self.stages for place, one in enumerate(stage.iters)
                  if one.annotation == IteratorAnnotation.VECTORIZE and stage.compute_at != ComputeAtKind.INLINED]  # fmt: skip
        found = {stage.ours: self._vector(stage, place) for stage, place in marked}
        return {name: loop for name, loop in found.items() if loop is not None}

    def _vector(self, stage: Stage, place: int) -> str | None:
        loops = stage.iters[place].loops
        vector = next((loop for loop in reversed(loops) if self._iterations(stage, [loop]) != 1), loops[-1] if loops else None)
        if vector is None:
            return None
        if self.structure.sketch.state[stage.ours].kinds[vector] != "spatial":
            raise ScheduleError(f"asked to vectorize loop {vector} of stage {stage.ours}, which runs along a reduction; vectorize a spatial loop")
        after = [loop for one in stage.iters[place + 1 :] for loop in one.loops]
        if after and self._iterations(stage, after) != 1:
            self.notes.append(f"loop {vector} of stage {stage.ours} is not vectorized: only the innermost loop can be")
            return None
        number = self.structure.computed[stage.ours]
        if any(at == number and which >= place for _, (at, which) in self.structure.attached):
            self.notes.append(f"loop {vector} of stage {stage.ours} is not vectorized: another stage is computed in it")
            return None
        return vector

    def annotations(self) -> Iterator[ours.Step]:
        """Annotate the loops, stage by stage."""
        for stage in self.stages:
            if stage.compute_at == ComputeAtKind.INLINED:
                continue
            yield from self._parallel(stage)
            if stage.ours in self.vectors:
                yield ours.Vectorize(stage.ours, self.vectors[stage.ours])
            yield from self._unrolled(stage)
            limit = stage.attrs.auto_unroll_max_step
            if limit > MAX_STATEMENTS:
                self.notes.append(f"loops of stage {stage.ours} are unrolled up to {MAX_STATEMENTS} steps, not {limit}")
            if limit:
                yield ours.PragmaUnroll(stage.ours, min(limit, MAX_STATEMENTS))

    def _parallel(self, stage: Stage) -> Iterator[ours.Step]:
        amount, count, wanted = 0, 0, 0
        serial = stage.compute_at == ComputeAtKind.ITER
        for one in stage.iters:
            count += len(one.loops)
            if one.annotation == IteratorAnnotation.PARALLEL:
                self._check_spatial(stage, one)
                wanted = count
                amount = amount if serial else count
            else:
                serial = serial or (bool(one.loops) and self._iterations(stage, one.loops) != 1)
        if wanted > amount:
            self.notes.append(f"inner loops of stage {stage.ours} are not parallel: only outermost loops of stages at root can be")
        kinds = self.structure.sketch.state[stage.ours].kinds
        if amount and all(kinds[loop] == "spatial" for loop in stage.loops[:amount]):
            yield ours.Parallel(stage.ours, amount)

    @staticmethod
    def _check_spatial(stage: Stage, one: Loop) -> None:
        if one.iter_kind in (IteratorKind.REDUCTION, IteratorKind.MIXED):
            raise ScheduleError(f"asked to run loops {', '.join(one.loops)} of stage {stage.ours} in parallel, which are reduction loops; choose spatial loops")

    def _unrolled(self, stage: Stage) -> Iterator[ours.Step]:
        written = 1
        for one in reversed(stage.iters):
            if one.annotation != IteratorAnnotation.UNROLL:
                continue
            written *= self._iterations(stage, one.loops) or 1
            if written > MAX_STATEMENTS:
                self.notes.append(f"loops of stage {stage.ours} are not unrolled: that would make more than {MAX_STATEMENTS} statements")
                return
            yield from (ours.Unroll(stage.ours, loop) for loop in one.loops)
