"""Applies each of the 14 steps to the names, numbers and extents of stages and iterators, and translates it to our steps. Source: TVM 0.9, `auto_scheduler`.

    SP, FSP, FFSP     Split or SplitOuter, FollowSplit, Split or SplitOuter by the resulting number
    FU                nothing yet: the fused loop remains nested loops. It becomes a Fuse once it is split, or if it is a pure reduction
    CHW, CHR, RF      CacheWrite, CacheRead, Rfactor
    RE, AN, PR, CA, CI, CR     at the end (`program`), so that their order does not matter
    SA                nothing

Numbers in steps come from untrusted logs, so all of them are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator as Iteration
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from math import prod
from typing import cast

from ansor.compat.auto_scheduler import steps as logged
from ansor.compat.auto_scheduler.placed import extents
from ansor.compat.auto_scheduler.stages import (
    Axes,
    ComputeAtKind,
    Iterator,
    IteratorKind,
    Named,
    Range,
    Stage,
    StageAttributes,
    computed_stage,
    names_of,
)
from ansor.compat.auto_scheduler.steps import IteratorAnnotation, LoggedStep
from ansor.compat.auto_scheduler.structure import MAX_ITERATORS, StateObject
from ansor.errors import ScheduleError
from ansor.ir.dag import c_identifier
from ansor.schedule import steps as ours
from ansor.schedule.choice import tile_choice
from ansor.te.expr import Reduce

Cut = logged.SplitStep | logged.FollowSplitStep | logged.FollowFusedSplitStep


def next_state(state: StateObject, step: LoggedStep) -> StateObject:
    """The state after one more step. Raises ScheduleError if the step does not fit."""
    return replace(applied(step, state), transform_steps=(*state.transform_steps, step))


@singledispatch
def applied(step: LoggedStep, before: StateObject) -> StateObject:
    """The structure after a step. Raises ScheduleError if it does not fit."""
    raise ScheduleError(f"asked to apply a step of the kind {type(step).__name__}, which is unknown; give one of the 14 steps")


@applied.register
def _annotate(step: logged.AnnotationStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "annotate")
    found = stage.check_iter(step.iter_id, "annotate")
    if found.annotation != IteratorAnnotation.NONE:
        known = found.annotation.name.lower()
        raise ScheduleError(f"asked to annotate iterator {found.name} of stage {stage.name}, which is {known} already; annotate it once")
    return before.with_iters(step.stage_id, _exchanged(stage.iters, step.iter_id, 1, [replace(found, annotation=IteratorAnnotation(step.annotation))]))


@applied.register
def _fuse(step: logged.FuseStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "fuse loops of")
    ids = step.fused_ids
    if not ids:
        # To make a stage without outer loops parallel, TVM adds a loop of one iteration around everything.
        fused = Iterator("", Range(0, 1), IteratorKind.SPECIAL, label="fused")
        return before.with_iters(step.stage_id, [fused, *stage.iters]).moved(step.stage_id, {k: k + 1 for k in range(len(stage.iters))})
    parts = [stage.check_iter(k, "fuse") for k in ids]
    first, last = ids[0], ids[-1]
    if ids != tuple(range(first, first + len(ids))):
        raise ScheduleError(f"asked to fuse iterators {', '.join(map(str, ids))} of stage {stage.name}, which are not adjacent; reorder them first")
    for k in ids[:-1]:
        for inside in before.at((step.stage_id, k)):
            raise ScheduleError(f"asked to fuse iterator {stage.iters[k].name} of stage {stage.name} with those inside it, but stage "
                                f"{before.stages[inside].name} is computed there; move that one first")  # fmt: skip
    ranges = [one.range for one in parts]
    extent = Range(0, prod(values.extent for values in ranges if values)) if all(ranges) else None
    kinds = {one.iter_kind for one in parts}
    label = parts[0].label if len(parts) == 1 else ".".join(one.label for one in parts) + ".fused"
    fused = Iterator("".join(f"{one.name}@" for one in parts), extent, kinds.pop() if len(kinds) == 1 else IteratorKind.MIXED, label=label,
                     loops=tuple(loop for one in parts for loop in one.loops))  # fmt: skip
    places = {k: first if k <= last else k - len(ids) + 1 for k in range(first, len(stage.iters))}
    return before.with_iters(step.stage_id, _exchanged(stage.iters, first, len(ids), [fused])).moved(step.stage_id, places)


@applied.register
def _pragma(step: logged.PragmaStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "hint at")
    stage.check_iter(step.iter_id, "hint at")
    if step.pragma_type == "debug_skip_region":
        reason = f"asked for a program that does not compute stage {stage.ours} (pragma debug_skip_region); leave out that step"
        return before.detached(step.stage_id).refusing(reason)
    limit = unroll_limit(step)
    return before.with_stage(step.stage_id, replace(stage, attrs=replace(stage.attrs, auto_unroll_max_step=limit)))


def unroll_limit(step: logged.PragmaStep) -> int:
    """The N of `auto_unroll_max_step$N`. Raises ScheduleError for any other pragma."""
    found = re.fullmatch(r"auto_unroll_max_step\$(\d{1,9})", step.pragma_type)
    if found is None:
        raise ScheduleError(f"asked for the pragma {step.pragma_type!a:.80}; pragmas are auto_unroll_max_step$N and debug_skip_region")
    return int(found[1])


@applied.register
def _reorder(step: logged.ReorderStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "reorder")
    if sorted(step.after_ids) != list(range(len(stage.iters))):
        order = ", ".join(map(str, step.after_ids[:32]))
        raise ScheduleError(f"asked to put the {len(stage.iters)} iterators of stage {stage.name} in the order {order}; list each of them once")
    places = {old: new for new, old in enumerate(step.after_ids)}
    return before.with_iters(step.stage_id, [stage.iters[k] for k in step.after_ids]).moved(step.stage_id, places)


def source_of(number: int, history: Sequence[LoggedStep]) -> logged.SplitStep:
    """The split that a later step follows. Raises ScheduleError if that step is not a split."""
    found = history[number] if 0 <= number < len(history) else None
    if not isinstance(found, logged.SplitStep):
        raise ScheduleError(f"asked to follow step {number}, which is {type(found).__name__ if found else 'not there'}; follow an earlier SplitStep")
    return found


def followed_lengths(step: logged.FollowSplitStep, history: Sequence[LoggedStep]) -> tuple[int | None, ...]:
    """The first `n_split` - 1 lengths of the followed split, and the product of the rest."""
    lengths = source_of(step.src_step_id, history).lengths
    if not 1 <= step.n_split <= len(lengths) + 1:
        raise ScheduleError(f"asked to follow {step.n_split} lengths of step {step.src_step_id}, which has {len(lengths)}; follow 1 to {len(lengths) + 1}")
    return (*lengths[: step.n_split - 1], _product(lengths[step.n_split - 1 :]))


def fused_length(step: logged.FollowFusedSplitStep, history: Sequence[LoggedStep]) -> int | None:
    """The product of the lengths at that level over all followed splits."""
    found = []
    for number in step.src_step_ids:
        lengths = source_of(number, history).lengths
        if not 0 <= step.level < len(lengths):
            raise ScheduleError(f"asked to follow level {step.level} of step {number}, which has {len(lengths)} lengths; name a level before its last")
        found.append(lengths[step.level])
    return _product(found)


def cut_lengths(step: Cut, history: Sequence[LoggedStep]) -> tuple[tuple[int | None, ...], bool]:
    """The lengths of a split, and whether they are those of the inner parts."""
    match step:
        case logged.SplitStep():
            return step.lengths, step.inner_to_outer
        case logged.FollowSplitStep():
            return followed_lengths(step, history), True
        case logged.FollowFusedSplitStep():
            return (fused_length(step, history),), step.factor_or_nparts


def _product(lengths: Sequence[int | None]) -> int | None:
    known = [one for one in lengths if one is not None]
    return prod(known) if len(known) == len(lengths) else None


@applied.register
def _cut(step: Cut, before: StateObject) -> StateObject:
    lengths, inner_to_outer = cut_lengths(step, before.transform_steps)
    number, which, stage = step.stage_id, step.iter_id, before.stage(step.stage_id, "split a loop of")
    whole = stage.check_iter(which, "split")
    if any(one is not None and one < 1 for one in lengths):
        raise ScheduleError(f"asked to split iterator {whole.name} of stage {stage.name} into lengths {lengths}; give lengths of 1 or more")
    if len(stage.iters) + len(lengths) > MAX_ITERATORS:
        raise ScheduleError(f"asked to split iterator {whole.name} of stage {stage.name} into {len(lengths) + 1}; a stage has at most {MAX_ITERATORS}")
    count = len(lengths) + 1
    extents = _extents(whole.range, lengths, inner_to_outer)
    labels = _part_labels(whole.label, count, inner_to_outer)
    after = _cut_ours(before, step, lengths, inner_to_outer)
    loops = after.stages[number].iters[which].loops
    named = [loops] if count == 1 else [tuple(f"{loop}_{k}" for loop in loops) for k in range(count)]
    parts = [
        Iterator(f"{whole.name}.{k}", None if extent is None else Range(0, extent), whole.iter_kind, label=label, loops=own)
        for k, (extent, label, own) in enumerate(zip(extents, labels, named, strict=True))
    ]
    places = {k: k + count - 1 for k in range(which, len(stage.iters))}
    return after.with_iters(number, _exchanged(after.stages[number].iters, which, 1, parts)).moved(number, places)


def _cut_ours(before: StateObject, step: Cut, lengths: tuple[int | None, ...], inner_to_outer: bool) -> StateObject:
    """Add our step for a split."""
    one = before.as_one_loop(step.stage_id, step.iter_id)
    stage, whole = one.stages[step.stage_id], one.stages[step.stage_id].iters[step.iter_id]
    if one.refused or not lengths:
        return one
    (loop,), count = whole.loops, len(lengths) + 1
    if isinstance(step, logged.FollowSplitStep):
        given = before.opened.get(step.src_step_id) or cast("tuple[int, ...]", source_of(step.src_step_id, before.transform_steps).lengths)
        return one.then(ours.FollowSplit(stage.ours, loop, given, count))
    if None not in lengths:
        return one.then(_split_by(stage.ours, loop, cast("tuple[int, ...]", lengths), whole.range, inner_to_outer))
    if isinstance(step, logged.FollowFusedSplitStep):
        return one.refusing(f"asked to split loop {loop} of stage {stage.ours} by the product of lengths that are open; fill them first")
    if set(lengths) != {None} or not inner_to_outer:
        return one.refusing(f"asked to split loop {loop} of stage {stage.ours} into lengths {lengths}; leave all of them open, from inside out, or none")
    return _open_split(one, step, stage.ours, loop)


def _split_by(stage: str, loop: str, lengths: tuple[int, ...], values: Range | None, inner_to_outer: bool) -> ours.Step:
    """Split by inner lengths if they are known, so that programs of the same kind have the same form."""
    if inner_to_outer:
        return ours.Split(stage, loop, lengths, len(lengths) + 1)
    if values is None:
        return ours.SplitOuter(stage, loop, lengths, len(lengths) + 1)
    rest = values.extent
    for length in lengths:
        rest = -(-rest // length)
    return ours.Split(stage, loop, (*lengths[1:], rest), len(lengths) + 1)


def _open_split(before: StateObject, step: logged.SplitStep, stage: str, loop: str) -> StateObject:
    values = before.stages[step.stage_id].iters[step.iter_id].range
    try:
        extent = step.extent or (values.extent if values else extents(before)[stage, loop])
    except ScheduleError as error:
        return before.refusing(str(error))
    choice = tile_choice(f"{stage}.{loop}", extent, len(step.lengths))
    after = before.then(ours.Split(stage, loop, choice.name, len(step.lengths) + 1), choices=[choice])
    return replace(after, opened={**after.opened, len(after.transform_steps): choice.name})


def _extents(values: Range | None, lengths: tuple[int | None, ...], inner_to_outer: bool) -> list[int | None]:
    """The extents of the parts, outermost first. A part whose extent depends on an open length is open too."""
    rest = values.extent if values else None
    found: list[int | None] = []
    for length in reversed(lengths) if inner_to_outer else lengths:
        if length is None or rest is None:
            rest = None
        found.append(None if rest is None else length)
        rest = None if rest is None or length is None else -(-rest // length)
    found.append(rest)
    return found[::-1] if inner_to_outer else found


def _part_labels(label: str, count: int, inner_to_outer: bool) -> list[str]:
    """The labels that result from repeated splits in two, each of which splits the outer part again, or the inner one."""
    if inner_to_outer:
        return [label + ".outer" * (count - 1 - k) + (".inner" if k else "") for k in range(count)]
    return [label + ".inner" * k + (".outer" if k < count - 1 else "") for k in range(count)]


@applied.register
def _align(step: logged.StorageAlignStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "align")
    stage.check_iter(step.iter_id, "align")
    note = f"storage_align of stage {stage.ours} is left out: it has no effect on a processor"
    aligned = replace(stage, attrs=StageAttributes(stage.attrs.auto_unroll_max_step, step.offset))
    return replace(before.with_stage(step.stage_id, aligned), notes=(*before.notes, note))


@applied.register
def _compute_at(step: logged.ComputeAtStep, before: StateObject) -> StateObject:
    stage, target = before.stage(step.stage_id, "move"), before.stage(step.target_stage_id, "compute something in")
    target.check_iter(step.target_iter_id, "compute something at")
    if step.stage_id == step.target_stage_id or step.stage_id in _around(before, step.target_stage_id):
        raise ScheduleError(f"asked to compute stage {stage.name} in stage {target.name}, which is computed in it; name a stage that reads it")
    if target.compute_at == ComputeAtKind.INLINED:
        raise ScheduleError(f"asked to compute stage {stage.name} in stage {target.name}, which is inlined and has no loops; name the stage that reads it")
    moved = before.detached(step.stage_id).with_stage(step.stage_id, replace(stage.unbounded(), compute_at=ComputeAtKind.ITER))
    return replace(moved, attached=(*moved.attached, (step.stage_id, (step.target_stage_id, step.target_iter_id))))


def _around(structure: StateObject, number: int) -> Iteration[int]:
    """The stages that a stage is computed in."""
    place = structure.place(number)
    while place is not None:
        yield place[0]
        place = structure.place(place[0])


@applied.register
def _compute_inline(step: logged.ComputeInlineStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "inline")
    _check_empty(before, step.stage_id, "inline", "move that one first")
    return before.detached(step.stage_id).with_stage(step.stage_id, replace(stage, compute_at=ComputeAtKind.INLINED))


@applied.register
def _compute_root(step: logged.ComputeRootStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "move to root")
    return before.detached(step.stage_id).with_stage(step.stage_id, replace(stage.unbounded(), compute_at=ComputeAtKind.ROOT))


@applied.register
def _cache_read(step: logged.CacheReadStep, before: StateObject) -> StateObject:
    if not 0 <= step.stage_id < len(before.stages):
        raise ScheduleError(f"asked to copy stage {step.stage_id}; the stages are 0 to {len(before.stages) - 1}")
    source = before.stages[step.stage_id]
    for reader in step.reader_stage_ids:
        before.stage(reader, f"copy {source.name} for")
    if not step.reader_stage_ids:
        raise ScheduleError(f"asked to copy stage {source.name} for no readers; name the stages that read it")
    op = replace(source.op, name=_copy_name(source.name, _scope(step.scope_name), before.stages))
    axes = tuple((f"ax{k}", Range(0, extent)) for k, extent in enumerate(op.shape))
    after = before.then(ours.CacheRead(source.ours, tuple(before.stages[reader].ours for reader in step.reader_stage_ids), c_identifier(step.scope_name)))
    return after.inserted(step.stage_id + 1, computed_stage(op, op.name, axes, same=_made(before, after)))


def _made(before: StateObject, after: StateObject) -> Named:
    """The stage of our schedule that a step made."""
    known = before.computed
    return next((_named(after, stage.name) for stage in after.sketch.state.stages if stage.name not in known), ("", ()))


def _named(structure: StateObject, name: str) -> Named:
    return ("", ()) if structure.refused else (name, structure.sketch.state[name].loops)


def _scope(name: str) -> str:
    if not re.fullmatch(r"\w[\w.]{0,63}", name, re.ASCII):
        raise ScheduleError(f"asked for a copy in the scope {name!a:.80}; a scope is a short word such as local")
    return name


def _copy_name(name: str, scope: str, stages: Sequence[Stage]) -> str:
    """`A.local`; `A.d.local` for the second copy, and so on."""
    taken = {stage.name for stage in stages}
    while f"{name}.{scope}" in taken:
        name += ".d"
    return f"{name}.{scope}"


@applied.register
def _cache_write(step: logged.CacheWriteStep, before: StateObject) -> StateObject:
    stage = _untouched(before, step.stage_id, "cache")
    op = replace(stage.op, name=f"{stage.name}.{_scope(step.scope_name)}")
    after = before.then(ours.CacheWrite(stage.ours))
    private = computed_stage(op, op.name, tuple((f"{label}.c", values) for label, values in stage.spatial), stage.reduced, _made(before, after))
    copy = replace(computed_stage(stage.op, stage.name, stage.spatial, same=_named(after, stage.ours)), compute_at=stage.compute_at)
    return after.with_stage(step.stage_id, copy).inserted(step.stage_id, private)


def _untouched(before: StateObject, number: int, verb: str) -> Stage:
    """A stage with unchanged loops in which no other stage is computed."""
    stage = before.stage(number, verb)
    if not stage.is_whole():
        raise ScheduleError(f"asked to {verb} stage {stage.name}, whose loops were already changed ({names_of(stage.iters)}); do this first")
    _check_empty(before, number, verb)
    return stage


def _check_empty(before: StateObject, number: int, verb: str, cure: str = "do this before compute_at") -> None:
    for who, (at, _) in before.attached:
        if at == number:
            raise ScheduleError(f"asked to {verb} stage {before.stages[number].name}, in which stage {before.stages[who].name} is computed; {cure}")


@applied.register
def _rfactor(step: logged.RfactorStep, before: StateObject) -> StateObject:
    stage = before.stage(step.stage_id, "factor")
    loop = stage.check_iter(step.iter_id, "factor out")
    if loop.iter_kind != IteratorKind.REDUCTION or not stage.op.compute or not isinstance(stage.op.compute.body, Reduce):
        raise ScheduleError(f"asked to factor iterator {loop.name} out of the reduction of stage {stage.name}, which it is not part of; name a reduction loop")
    if not 0 <= step.factor_iter_id <= len(stage.spatial):
        raise ScheduleError(f"asked to put the factor of stage {stage.name} at position {step.factor_iter_id}; positions are 0 to {len(stage.spatial)}")
    _check_empty(before, step.stage_id, "factor")
    rest = _rest_of_reduction(stage, loop)
    values = loop.range or Range(0, 1)
    axes = (*stage.spatial[: step.factor_iter_id], (loop.label, values), *stage.spatial[step.factor_iter_id :])
    op = replace(stage.op, name=f"{stage.name}.rf")
    combined = tuple((f"ax{k}", one) for k, (_, one) in enumerate(stage.spatial))
    after = _rfactored(before, step)
    final = computed_stage(stage.op, f"{stage.name}.repl", combined, ((f"{loop.label}.v", values),), _named(after, stage.ours))
    partial = computed_stage(op, op.name, axes, rest, _made(before, after))
    return after.with_stage(step.stage_id, replace(final, compute_at=stage.compute_at)).inserted(step.stage_id, partial)


def _rfactored(before: StateObject, step: logged.RfactorStep) -> StateObject:
    """Add our steps. The loops become: spatial loops as declared, whole reductions, the parts of the split one, and last the factored loop."""
    one = before.as_one_loop(step.stage_id, step.iter_id)
    if one.refused:
        return one
    own = one.stages[step.stage_id]
    (loop,), stage = own.iters[step.iter_id].loops, one.sketch.state[own.ours]
    whole = tuple(axis.name for axis in stage.axes if axis.name in stage.loops and axis.name != loop)
    order = (*whole, *(other for other in own.loops if other not in (*whole, loop)), loop)
    return (one if stage.loops == order else one.then(ours.Reorder(own.ours, order))).then(ours.Rfactor(own.ours, loop, step.factor_iter_id))


def _rest_of_reduction(stage: Stage, loop: Iterator) -> Axes:
    """The other loops of a factored reduction: whole axes as declared, then the parts split off together with the loop, outermost first."""
    whole = dict(stage.reduced)
    cut = [one for one in stage.iters if one.label not in whole and one.iter_kind == IteratorKind.REDUCTION and one is not loop]
    left = [one for one in stage.iters if one.iter_kind != IteratorKind.REDUCTION]
    if sorted(one.label for one in left) != sorted(label for label, _ in stage.spatial):
        raise ScheduleError(f"asked to factor stage {stage.name}, whose spatial loops were already changed ({names_of(tuple(left))}); do this first")
    axes = _axes_in(loop.label, whole)
    for one in cut:
        if _axes_in(one.label, whole) != axes:
            raise ScheduleError(f"asked to factor iterator {loop.name} out of stage {stage.name}, where another axis was split ({one.name}); do this first")
    present = {one.label for one in stage.iters if one is not loop}
    return (*((label, values) for label, values in stage.reduced if label in present), *((one.label, one.range or Range(0, 1)) for one in cut))


def _axes_in(label: str, axes: Mapping[str, Range]) -> set[str]:
    """The axes that make up a loop."""
    return {word for word in label.split(".") if word in axes} or {label}


def _exchanged(iters: tuple[Iterator, ...], first: int, count: int, new: Sequence[Iterator]) -> list[Iterator]:
    return [*iters[:first], *new, *iters[first + count :]]
