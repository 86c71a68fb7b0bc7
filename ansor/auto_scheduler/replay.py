"""From a state to a program of ours: the 14 steps in terms of `ansor.schedule.steps`.

TVM's steps name loops by number, ours by name; so a shadow of every stage keeps, for each iterator, the loops of ours that it is:

    SP        Split                                 FU     nothing yet: the fused loop is those loops, one inside the other. It becomes a Fuse when it is cut
                                                           or when it is nothing but a reduction
    FSP       FollowSplit                           RE     one Reorder, at the end
    FFSP      Split by the number it stands for     CA, CI, CR    at the end, consumers first, so that their order does not matter
    CHW, CHR, RF      CacheWrite, CacheRead, Rfactor
    AN, PR    at the end: Parallel of as many outermost loops as the fused one was made of; Vectorize of the innermost of them; Unroll; PragmaUnroll
    SA        nothing

What changes no result and cannot be taken over (a parallel loop inside a serial one) is left out and noted. What would be another program raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import cast

from ansor.auto_scheduler.declaration import Declaration
from ansor.auto_scheduler.layout import packing_steps
from ansor.auto_scheduler.loop_state import ANNOTATIONS, StateObject
from ansor.auto_scheduler.measured import LayoutRewriteOption
from ansor.auto_scheduler.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    IteratorAnnotation,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    StorageAlignStep,
)
from ansor.auto_scheduler.steps import Step as LoggedStep
from ansor.auto_scheduler.transform import fused_length, source_of, unroll_limit
from ansor.errors import ScheduleError
from ansor.ir.dag import c_identifier
from ansor.ir.loops import For, Loops, Node
from ansor.schedule import steps as ours
from ansor.schedule.choice import Choice, tile_choice
from ansor.schedule.legality import MAX_STATEMENTS
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import FuseRelation, Stage, initial_state

_logger = logging.getLogger("auto_scheduler")


@dataclass(frozen=True, eq=False)
class Replayed:
    """The program of a state. names: of our stage for each of its stages, "" for one that is given; loops: for each iterator the loops of ours that it is;
    notes: what was left out, in sentences."""

    sketch: Sketch
    names: tuple[str, ...]
    loops: tuple[tuple[tuple[str, ...], ...], ...]
    notes: tuple[str, ...] = ()

    def warn(self) -> None:
        """Say what was left out."""
        for note in self.notes:
            _logger.warning(note)

    @cached_property
    def lowered(self) -> Loops:
        """Its loops. Raises ScheduleError where a length is open."""
        if self.sketch.choices:
            names = ", ".join(choice.name for choice in self.sketch.choices)
            raise ScheduleError(f"asked for the loops of a state with open lengths ({names}); fill them first")
        return self.sketch.lower_row(())

    @cached_property
    def extents(self) -> dict[tuple[str, str], int]:
        """Our stage and loop -> iterations."""
        found: dict[str, list[int]] = {}
        for loop in _all_loops(self.lowered.body):
            found.setdefault(loop.stage, []).append(cast(int, loop.var.extent))
        return {(stage.name, loop): extent for stage in self.sketch.state.stages for loop, extent in zip(stage.loops, found.get(stage.name, []), strict=False)}


def _all_loops(nodes: Sequence[Node]) -> Iterator[For]:
    for node in nodes:
        if isinstance(node, For):
            yield node
            yield from _all_loops(node.body)


def replayed(dag: Declaration, state: StateObject, layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.NO_REWRITE) -> Replayed:
    """The program of a state. Raises ScheduleError when there is none for a processor."""
    return _replay(dag, state.transform_steps).finished(layout_rewrite)


def _replay(dag: Declaration, steps: Sequence[LoggedStep]) -> _Replay:
    replay = _Replay(dag)
    for step in steps:
        replay.take(step)
    return replay


@dataclass(eq=False)
class _Piece:
    """An iterator: the loops of ours that it is, outermost first."""

    loops: tuple[str, ...]
    annotation: IteratorAnnotation = IteratorAnnotation.NONE


@dataclass(eq=False)
class _Shadow:
    """A stage: what it is called here ("" when it is given), its iterators, and where it is computed."""

    name: str
    pieces: list[_Piece] = field(default_factory=list)
    inlined: bool = False
    place: tuple[_Shadow, _Piece] | None = None
    limit: int | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """Our loops in the order of the iterators."""
        return tuple(loop for piece in self.pieces for loop in piece.loops)


class _Replay:
    """Takes steps one after the other; `finished` tells what they come to."""

    def __init__(self, dag: Declaration) -> None:
        self.dag = dag
        self.state = initial_state(dag.dag)
        self.steps: list[ours.Step] = []
        self.history: list[LoggedStep] = []
        self.choices: dict[int, Choice] = {}
        self.notes: list[str] = []
        self.shadows = [self._shadow(dag.renamed[id(op)].name if op.compute else "") for op in dag.ops]

    def take(self, step: LoggedStep) -> None:
        """One step, which fits the state that the steps before lead to."""
        _TAKE[type(step)](self, step)
        self.history.append(step)

    def do(self, *steps: ours.Step) -> None:
        """Steps of ours. Raises ScheduleError for one that does not fit."""
        for step in steps:
            self.state = step.apply(self.state)
            self.steps.append(step)

    def _shadow(self, name: str) -> _Shadow:
        return _Shadow(name, [_Piece((loop,)) for loop in self.state[name].loops] if name else [])

    # loops ----------------------------------------------------------------------------------------------------------------------------------------

    def split(self, step: SplitStep) -> None:
        lengths = step.lengths
        shadow, loop = self._loop(step.stage_id, step.iter_id)
        if None in lengths:
            if set(lengths) != {None} or not step.inner_to_outer:
                raise ScheduleError(f"asked to split loop {loop} of stage {shadow.name} into lengths {lengths}; leave all open, from inside out, or none")
            extent = step.extent or self._extent(step.stage_id, step.iter_id)
            choice = self.choices[len(self.history)] = tile_choice(f"{shadow.name}.{loop}", extent, len(lengths))
            self._cut(step.stage_id, step.iter_id, ours.Split(shadow.name, loop, choice.name, len(lengths) + 1), len(lengths) + 1)
            return
        given = cast("tuple[int, ...]", lengths)
        inner = given if step.inner_to_outer else self._inner_lengths(step.stage_id, step.iter_id, given)
        self._cut(step.stage_id, step.iter_id, ours.Split(shadow.name, loop, inner, len(inner) + 1), len(inner) + 1)

    def follow_split(self, step: FollowSplitStep) -> None:
        shadow, loop = self._loop(step.stage_id, step.iter_id)
        source, choice = source_of(step.src_step_id, self.history), self.choices.get(step.src_step_id)
        lengths = cast("tuple[int, ...]", source.lengths) if choice is None else choice.name
        self._cut(step.stage_id, step.iter_id, ours.FollowSplit(shadow.name, loop, lengths, step.n_split + 1), step.n_split + 1)

    def follow_fused_split(self, step: FollowFusedSplitStep) -> None:
        shadow, loop = self._loop(step.stage_id, step.iter_id)
        length = fused_length(step, self.history)
        if length is None:
            raise ScheduleError(f"asked to split loop {loop} of stage {shadow.name} by the product of lengths that are open; fill them first")
        inner = (length,) if step.factor_or_nparts else self._inner_lengths(step.stage_id, step.iter_id, (length,))
        self._cut(step.stage_id, step.iter_id, ours.Split(shadow.name, loop, inner, 2), 2)

    def _cut(self, stage: int, which: int, step: ours.Split | ours.FollowSplit, count: int) -> None:
        shadow = self.shadows[stage]
        parts = [_Piece((f"{step.loop}_{k}",)) for k in range(count)]
        if count > 1:
            self.do(step)
        else:
            parts = [_Piece((step.loop,))]
        self._move(shadow.pieces[which], parts[-1])
        shadow.pieces[which : which + 1] = parts

    def _inner_lengths(self, stage: int, which: int, outer: tuple[int, ...]) -> tuple[int, ...]:
        """Those of all parts but the outermost, for outer parts of these lengths."""
        if not outer:
            return ()
        rest = self._extent(stage, which)
        for length in outer:
            rest = -(-rest // length)
        return (*outer[1:], rest)

    def _extent(self, stage: int, which: int) -> int:
        """Iterations of an iterator, as far as the steps so far tell."""
        shadow = self.shadows[stage]
        if shadow.inlined:
            known = _whole_extents(self.state[shadow.name])
            return prod(known[loop] for loop in shadow.pieces[which].loops)
        found = _replay(self.dag, self.history).unannotated()
        return prod(found.extents[shadow.name, loop] for loop in found.loops[stage][which])

    def _loop(self, stage: int, which: int) -> tuple[_Shadow, str]:
        """An iterator as one loop of ours: what was fused is fused now."""
        shadow, piece = self.shadows[stage], self.shadows[stage].pieces[which]
        if not piece.loops:
            raise ScheduleError(f"asked to cut a loop of stage {shadow.name} that was made by fusing none; it has one iteration")
        if len(piece.loops) > 1:
            self._put_in_order(shadow)
            self.do(ours.Fuse(shadow.name, piece.loops))
            piece.loops = (self.state[shadow.name].relations[-1].fused,)  # type: ignore[union-attr]  # the relation of a Fuse
        return shadow, piece.loops[0]

    def fuse(self, step: FuseStep) -> None:
        pieces, first = self.shadows[step.stage_id].pieces, step.fused_ids[0] if step.fused_ids else 0
        parts = pieces[first : first + len(step.fused_ids)]
        fused = _Piece(tuple(loop for piece in parts for loop in piece.loops))
        for piece in parts:
            self._move(piece, fused)
        pieces[first : first + len(parts)] = [fused]

    def reorder(self, step: ReorderStep) -> None:
        pieces = self.shadows[step.stage_id].pieces
        pieces[:] = [pieces[k] for k in step.after_ids]

    def _put_in_order(self, shadow: _Shadow) -> None:
        if self.state[shadow.name].loops != shadow.order:
            self.do(ours.Reorder(shadow.name, shadow.order))

    def _move(self, old: _Piece, new: _Piece) -> None:
        """What was computed at one iterator is computed at another."""
        for shadow in self.shadows:
            if shadow.place is not None and shadow.place[1] is old:
                shadow.place = (shadow.place[0], new)

    # annotations and places -----------------------------------------------------------------------------------------------------------------------

    def annotate(self, step: AnnotationStep) -> None:
        self.shadows[step.stage_id].pieces[step.iter_id].annotation = step.annotation

    def pragma(self, step: PragmaStep) -> None:
        shadow = self.shadows[step.stage_id]
        if step.pragma_type == "debug_skip_region":
            raise ScheduleError(f"asked for a program that does not compute stage {shadow.name} (pragma debug_skip_region); leave that step out")
        shadow.limit = unroll_limit(step)

    def storage_align(self, step: StorageAlignStep) -> None:
        self.notes.append(f"storage_align of stage {self.shadows[step.stage_id].name} is left out: it changes nothing on a processor")

    def compute_at(self, step: ComputeAtStep) -> None:
        shadow, target = self.shadows[step.stage_id], self.shadows[step.target_stage_id]
        shadow.inlined, shadow.place = False, (target, target.pieces[step.target_iter_id])

    def compute_inline(self, step: ComputeInlineStep) -> None:
        shadow = self.shadows[step.stage_id]
        shadow.inlined, shadow.place = True, None

    def compute_root(self, step: ComputeRootStep) -> None:
        shadow = self.shadows[step.stage_id]
        shadow.inlined, shadow.place = False, None

    # new stages -----------------------------------------------------------------------------------------------------------------------------------

    def cache_write(self, step: CacheWriteStep) -> None:
        shadow = self.shadows[step.stage_id]
        self.do(ours.CacheWrite(shadow.name))
        private = self.state.stages[self.state.position(shadow.name) - 1].name
        shadow.pieces = self._shadow(shadow.name).pieces
        self.shadows.insert(step.stage_id, self._shadow(private))

    def cache_read(self, step: CacheReadStep) -> None:
        source = self.shadows[step.stage_id].name or self.dag.renamed[id(self._given(step.stage_id))].name
        before = {stage.name for stage in self.state.stages}
        readers = tuple(self.shadows[reader].name for reader in step.reader_stage_ids)
        self.do(ours.CacheRead(source, readers, c_identifier(step.scope_name)))
        (copy,) = (stage.name for stage in self.state.stages if stage.name not in before)
        self.shadows.insert(step.stage_id + 1, self._shadow(copy))

    def _given(self, stage: int) -> object:
        """The tensor of a stage that is given. Those keep their order."""
        number = sum(not shadow.name for shadow in self.shadows[:stage])
        return [op for op in self.dag.ops if op.compute is None][number]

    def rfactor(self, step: RfactorStep) -> None:
        shadow, loop = self._loop(step.stage_id, step.iter_id)
        stage = self.state[shadow.name]
        assert stage.tensor.compute is not None
        spatial = tuple(axis.name for axis in stage.tensor.compute.axes)
        whole = tuple(axis.name for axis in stage.tensor.compute.reduce_axes if axis.name in stage.loops and axis.name != loop)
        cut = tuple(one for one in shadow.order if one not in (*spatial, *whole, loop))
        if stage.loops != (*spatial, *whole, *cut, loop):
            self.do(ours.Reorder(shadow.name, (*spatial, *whole, *cut, loop)))
        self.do(ours.Rfactor(shadow.name, loop, step.factor_iter_id))
        partial = self.state.stages[self.state.position(shadow.name) - 1].name
        shadow.pieces = self._shadow(shadow.name).pieces
        self.shadows.insert(step.stage_id, self._shadow(partial))

    # the end --------------------------------------------------------------------------------------------------------------------------------------

    def finished(self, layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.NO_REWRITE) -> Replayed:
        """What the steps come to. Asked once, at the end."""
        for shadow in self.shadows:
            _check_processor(shadow)
        self._fuse_reductions()
        vectors = self._vectors()
        for shadow in self._computed:
            vector = vectors.get(shadow.name)
            order = shadow.order if vector is None else (*(loop for loop in shadow.order if loop != vector), vector)
            if self.state[shadow.name].loops != order:
                self.do(ours.Reorder(shadow.name, order))
        self._place_all()
        for shadow in self._computed:
            if not shadow.inlined:
                self._annotate_all(shadow, vectors.get(shadow.name))
        self.do(*packing_steps(self.dag, self.state, layout_rewrite))
        return self._replayed()

    def unannotated(self) -> Replayed:
        """Loops and places alone. Asked once, at the end."""
        self._fuse_reductions()
        for shadow in self._computed:
            self._put_in_order(shadow)
        self._place_all()
        return self._replayed()

    def _fuse_reductions(self) -> None:
        """A fused reduction is one loop: it fills longer vectors."""
        for number, shadow in enumerate(self.shadows):
            for which, piece in enumerate(shadow.pieces):
                if len(piece.loops) > 1 and all(self.state[shadow.name].kinds[loop] == "reduce" for loop in piece.loops):
                    self._loop(number, which)

    def _replayed(self) -> Replayed:
        loops = tuple(tuple(piece.loops for piece in shadow.pieces) for shadow in self.shadows)
        sketch = Sketch(self.dag.dag, tuple(self.steps), tuple(self.choices.values()))
        return Replayed(sketch, tuple(shadow.name for shadow in self.shadows), loops, tuple(dict.fromkeys(self.notes)))

    @property
    def _computed(self) -> list[_Shadow]:
        return [shadow for shadow in self.shadows if shadow.name]

    def _place_all(self) -> None:
        """Consumers first: a stage is placed where those that read it are."""
        named = {shadow.name: shadow for shadow in self.shadows}
        for name in [stage.name for stage in reversed(self.state.stages)]:
            shadow = named[name]
            if shadow.inlined:
                self.do(ours.ComputeInline(name))
            elif shadow.place is not None:
                target, piece = shadow.place
                outside = target.pieces[: target.pieces.index(piece) + 1]
                loops = [loop for one in outside for loop in one.loops]
                if not loops:
                    raise ScheduleError(f"asked to compute stage {name} in a loop of one iteration around stage {target.name}; compute it at root")
                self.do(ours.ComputeAt(name, target.name, loops[-1]))

    @cached_property
    def _plain(self) -> Replayed | None:
        """The same program without annotations, for its extents; None where lengths are open."""
        if self.choices:
            return None
        return _replay(self.dag, self.history).unannotated()

    def _iterations(self, shadow: _Shadow, loops: Sequence[str]) -> int | None:
        """Of these loops together; None where lengths are open."""
        return None if self._plain is None else prod(self._plain.extents[shadow.name, loop] for loop in loops)

    def _vectors(self) -> dict[str, str]:
        """Our stage -> the loop of it that runs as vectors, and so comes last."""
        found = {}
        for shadow in self.shadows:
            for piece in shadow.pieces:
                if piece.annotation == IteratorAnnotation.VECTORIZE and not shadow.inlined:
                    vector = self._vector(shadow, piece)
                    if vector is not None:
                        found[shadow.name] = vector
        return found

    def _vector(self, shadow: _Shadow, piece: _Piece) -> str | None:
        kinds = self.state[shadow.name].kinds
        inside = shadow.pieces[shadow.pieces.index(piece) + 1 :]
        vector = next((loop for loop in reversed(piece.loops) if self._iterations(shadow, [loop]) != 1), piece.loops[-1] if piece.loops else None)
        if vector is None:
            return None
        if kinds[vector] != "spatial":
            raise ScheduleError(f"asked to vectorize loop {vector} of stage {shadow.name}, which runs along a reduction; vectorize a spatial loop")
        after = [loop for one in inside for loop in one.loops]
        if after and self._iterations(shadow, after) != 1:
            self.notes.append(f"loop {vector} of stage {shadow.name} does not run as vectors: only the innermost loop does")
            return None
        if any(other.place is not None and other.place[0] is shadow and other.place[1] in (piece, *inside) for other in self.shadows):
            self.notes.append(f"loop {vector} of stage {shadow.name} does not run as vectors: another stage is computed in it")
            return None
        return vector

    def _annotate_all(self, shadow: _Shadow, vector: str | None) -> None:
        self._run_in_parallel(shadow)
        if vector is not None:
            self.do(ours.Vectorize(shadow.name, vector))
        self._unroll(shadow)
        if shadow.limit is not None:
            if shadow.limit > MAX_STATEMENTS:
                self.notes.append(f"loops of stage {shadow.name} are unrolled up to {MAX_STATEMENTS} steps, not {shadow.limit}")
            self.do(ours.PragmaUnroll(shadow.name, min(shadow.limit, MAX_STATEMENTS)))

    def _run_in_parallel(self, shadow: _Shadow) -> None:
        kinds, amount, count, wanted = self.state[shadow.name].kinds, 0, 0, 0
        serial = shadow.place is not None
        for piece in shadow.pieces:
            count += len(piece.loops)
            if piece.annotation == IteratorAnnotation.PARALLEL:
                if any(kinds[loop] != "spatial" for loop in piece.loops):
                    raise ScheduleError(f"asked to run loops {', '.join(piece.loops)} of stage {shadow.name} in parallel, which reduce; choose spatial loops")
                wanted = count
                amount = amount if serial else count
            else:
                serial = serial or (bool(piece.loops) and self._iterations(shadow, piece.loops) != 1)
        if wanted > amount:
            self.notes.append(f"inner loops of stage {shadow.name} are not parallel: only outermost loops of stages at root are")
        if amount and all(kinds[loop] == "spatial" for loop in shadow.order[:amount]):
            self.do(ours.Parallel(shadow.name, amount))

    def _unroll(self, shadow: _Shadow) -> None:
        written = 1
        for piece in reversed(shadow.pieces):
            if piece.annotation != IteratorAnnotation.UNROLL:
                continue
            written *= self._iterations(shadow, piece.loops) or 1
            if written > MAX_STATEMENTS:
                self.notes.append(f"loops of stage {shadow.name} are not written out: that would be more than {MAX_STATEMENTS} statements")
                return
            self.do(*(ours.Unroll(shadow.name, loop) for loop in piece.loops))


def _whole_extents(stage: Stage) -> dict[str, int]:
    """Iterations of the loops of a stage that is computed whole; its lengths are given."""
    found = {axis.name: axis.extent for axis in stage.axes}
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            found[relation.fused] = prod(found[loop] for loop in relation.parents)
            continue
        rest, lengths = found[relation.parent], cast("tuple[int, ...]", relation.lengths)
        if relation.follow:
            lengths = (*lengths[: relation.follow - 1], prod(lengths[relation.follow - 1 :]))
        for part, length in reversed(list(zip(relation.parts[1:], lengths, strict=True))):
            found[part] = min(length, rest)
            rest = -(-rest // found[part])
        found[relation.parts[0]] = rest
    return found


def _check_processor(shadow: _Shadow) -> None:
    for piece in shadow.pieces:
        if piece.annotation > IteratorAnnotation.PARALLEL:
            name, what = ANNOTATIONS[piece.annotation], "/".join(piece.loops)
            raise ScheduleError(f"asked for the program of a state whose loop {what} of stage {shadow.name} is {name}, which processors do not have; "
                                f"take a state made for llvm")  # fmt: skip


_TAKE: dict[type[LoggedStep], Callable[[_Replay, LoggedStep], None]] = cast("dict[type[LoggedStep], Callable[[_Replay, LoggedStep], None]]", {
    SplitStep: _Replay.split, FollowSplitStep: _Replay.follow_split, FollowFusedSplitStep: _Replay.follow_fused_split, FuseStep: _Replay.fuse,
    ReorderStep: _Replay.reorder, AnnotationStep: _Replay.annotate, PragmaStep: _Replay.pragma, StorageAlignStep: _Replay.storage_align,
    ComputeAtStep: _Replay.compute_at, ComputeInlineStep: _Replay.compute_inline, ComputeRootStep: _Replay.compute_root, CacheReadStep: _Replay.cache_read,
    CacheWriteStep: _Replay.cache_write, RfactorStep: _Replay.rfactor,
})  # fmt: skip
