"""Prints the steps of a state as Python calls on a schedule from `te.create_schedule`. Source: TVM 0.9, `ComputeDAG::PrintStepsAsPython`.

    C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)
    C_i_o, C_i_i = s[C].split(C_i, factor=16)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.compat.auto_scheduler import steps as logged
from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.stages import Iterator as Loop
from ansor.compat.auto_scheduler.stages import Stage, clean
from ansor.compat.auto_scheduler.steps import ANNOTATIONS, IteratorAnnotation, LoggedStep
from ansor.compat.auto_scheduler.structure import StateObject, initial_state
from ansor.compat.auto_scheduler.transform import cut_lengths, next_state


def python_text(dag: Declaration, state: StateObject) -> str:
    """One line for each stage, and one or more for each step."""
    current = initial_state(dag)
    lines = [line for stage in current.stages if stage.op_type == "compute" for line in _axes(stage)]
    for step in state.transform_steps:
        after = next_state(current, step)
        lines += _written(step, current, after)
        current = after
    return "".join(f"{line}\n" for line in lines)


def _axes(stage: Stage, where: str = "") -> Iterator[str]:
    """The line that assigns the stage's axes to names. where: the object with these axes, by default the stage's tensor."""
    names, where = ", ".join(_name(stage, one) for one in stage.iters), where or clean(stage.name)
    reduced = f" + tuple({where}.op.reduce_axis)" if stage.reduced else ""
    if names:
        yield f"{names}{',' if len(stage.iters) == 1 else ''} = tuple({where}.op.axis){reduced}"


def _name(stage: Stage, loop: Loop) -> str:
    own, name = clean(stage.name), clean(loop.label)
    return name if name.startswith(f"{own}_") else f"{own}_{name}"


def _head(stage: Stage) -> str:
    return f"s[{clean(stage.name)}]"


def _written(step: LoggedStep, before: StateObject, after: StateObject) -> list[str]:
    stage, new = before.stages[step.stage_id], after.stages[step.stage_id]
    head = _head(stage)
    match step:
        case logged.SplitStep() | logged.FollowSplitStep() | logged.FollowFusedSplitStep():
            return _split(stage, step.iter_id, *cut_lengths(step, before.transform_steps))
        case logged.FuseStep():
            return [f"{_name(new, new.iters[step.fused_ids[0] if step.fused_ids else 0])} = {head}.fuse({_names(stage, step.fused_ids)})"]
        case logged.ReorderStep():
            return [f"{head}.reorder({_names(stage, step.after_ids)})"]
        case logged.AnnotationStep():
            return _annotation(stage, step)
        case logged.PragmaStep():
            return _pragma(stage, step)
        case logged.StorageAlignStep():
            return [f"{head}.storage_align({_names(stage, [step.iter_id])}, {step.factor}, {step.offset})"]
        case logged.ComputeAtStep():
            target = before.stages[step.target_stage_id]
            return [f"{head}.compute_at({_head(target)}, {_names(target, [step.target_iter_id])})"]
        case logged.ComputeInlineStep():
            return [f"{head}.compute_inline()"]
        case logged.ComputeRootStep():
            return [f"{head}.compute_root()"]
        case logged.CacheReadStep():
            copy, readers = after.stages[step.stage_id + 1], ", ".join(clean(before.stages[k].name) for k in step.reader_stage_ids)
            return [f'{clean(copy.name)} = s.cache_read({clean(stage.name)}, "{step.scope_name}", [{readers}])', *_axes(copy)]
        case logged.CacheWriteStep():
            return [f'{clean(new.name)} = s.cache_write({clean(stage.name)}, "{step.scope_name}")', *_axes(new)]
        case logged.RfactorStep():
            return _rfactor(stage, new, after.stages[step.stage_id + 1], step)
    raise NotImplementedError(type(step).__name__)


def _names(stage: Stage, which: Sequence[int]) -> str:
    return ", ".join(_name(stage, stage.iters[k]) for k in which)


def _annotation(stage: Stage, step: logged.AnnotationStep) -> list[str]:
    name, verb = _names(stage, [step.iter_id]), ANNOTATIONS[step.annotation]
    if step.annotation == IteratorAnnotation.NONE:
        return []
    if step.annotation > IteratorAnnotation.PARALLEL:
        return [f'{_head(stage)}.bind({name}, te.thread_axis("{verb}"))']
    return [f"{_head(stage)}.{verb}({name})"]


def _pragma(stage: Stage, step: logged.PragmaStep) -> list[str]:
    name, (pragma, _, value) = _names(stage, [step.iter_id]), step.pragma_type.partition("$")
    first = f'{_head(stage)}.pragma({name}, "{pragma}"{f", {value}" if value else ""})'
    return [first, f'{_head(stage)}.pragma({name}, "unroll_explicit", True)'] if value else [first]


def _rfactor(stage: Stage, partial: Stage, final: Stage, step: logged.RfactorStep) -> list[str]:
    factored = f"{clean(partial.name)} = s.rfactor({clean(stage.name)}, {_names(stage, [step.iter_id])}, {step.factor_iter_id})"
    return [factored, f"{clean(final.name)} = {clean(stage.name)}", *_axes(partial, _head(partial)), *_axes(final, _head(final))]


def _split(stage: Stage, which: int, lengths: Sequence[int | None], inner_to_outer: bool) -> list[str]:
    """A split as repeated splits in two."""
    label, lines = stage.iters[which].label, []
    prefix = clean(stage.name)
    for length in reversed(lengths) if inner_to_outer else lengths:
        outer, inner, whole = (f"{prefix}_{clean(one)}" for one in (f"{label}.outer", f"{label}.inner", label))
        lines.append(f"{outer}, {inner} = {_head(stage)}.split({whole}, {'factor' if inner_to_outer else 'nparts'}={length})")
        label = f"{label}.{'outer' if inner_to_outer else 'inner'}"
    return lines
