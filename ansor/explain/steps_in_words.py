"""A program's schedule in words: what was done to each stage. Two programs are compared by the difference of these texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansor.schedule.questions import is_follower, levels
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import SplitRelation, Stage, initial_state
from ansor.schedule.steps import (
    Buffered,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    FollowSplit,
    Fuse,
    Pack,
    PackInside,
    Parallel,
    PragmaUnroll,
    Reorder,
    Rfactor,
    SetScope,
    Split,
    SplitOuter,
    Step,
    StorageAlign,
    Tensorize,
    Unroll,
    Vectorize,
)

TILED = 4
"""A stage counts as tiled if it has at least this many levels."""


@dataclass(frozen=True)
class Fact:
    """A fact about a stage of a program: `text` follows the stage's name."""

    stage: str
    text: str


def in_words(sketch: Sketch, row: Sequence[int], vectors: Callable[[str], bool] = lambda dtype: True) -> tuple[Fact, ...]:
    """What a program does to its stages, in the order of steps. Tile lengths are left out: they are listed separately.

    vectors: whether the target has vectors of a type, which are of several elements.
    """
    steps = _owned(sketch, row)
    unrolled = {(owner, step.loop) for owner, step in steps if isinstance(step, Unroll)}
    found: dict[Fact, None] = {}
    for owner, step in steps:
        if owner not in sketch.state:  # steps of other packages may name anything
            found[Fact(owner, str(step))] = None
            continue
        stage = sketch.state[owner]
        if isinstance(step, (Split, SplitOuter, FollowSplit, Reorder, Unroll)):
            texts = _loops(stage, {loop for name, loop in unrolled if name == owner})
        elif isinstance(step, Vectorize) and not vectors(stage.tensor.dtype):
            texts = []
        else:
            texts = [_text(step, stage)]
        found.update((Fact(owner, text), None) for text in texts if text)
    return tuple(found)


def _owned(sketch: Sketch, row: Sequence[int]) -> list[tuple[str, Step]]:
    """The steps, each with the stage that it ends up in. A private tile and partial results take over the earlier steps of their stage; a copy starts with the
    step that creates it.
    """
    found: list[tuple[str, Step]] = []
    state = initial_state(sketch.dag)
    for step, concrete in zip(sketch.steps, sketch.concrete_steps(row), strict=True):
        after = step.apply(state)
        made = [stage.name for stage in after.stages if stage.name not in state]
        if isinstance(step, (CacheWrite, Rfactor)):
            found = [(made[0] if owner == step.stage else owner, earlier) for owner, earlier in found]
        found.append((made[0] if isinstance(step, CacheRead) else step.stage, concrete))
        state = after
    return found


def structure_of(stage: Stage) -> str:
    """The levels of a tiling, outermost first: S for spatial loops, R for reductions (`SSRSRS`); '' if nothing in the stage was split."""
    cut = {part: k for relation in stage.relations if isinstance(relation, SplitRelation) for k, part in enumerate(relation.parts)}
    if not cut:
        return ""
    whole = [kind for kind in ("spatial", "reduce") if not any(stage.kinds[part] == kind for part in cut)]
    letters: list[tuple[str, int]] = []
    for loop in stage.loops:
        kind, place = stage.kinds[loop], cut.get(loop, -1)
        if (loop in cut or kind in whole) and (kind, place) not in letters:
            letters.append((kind, place))
    return "".join("S" if kind == "spatial" else "R" for kind, _ in letters)


def _loops(stage: Stage, unrolled: set[str]) -> list[str]:
    """What happened to a stage's loops, over all its steps."""
    order = " | ".join(" ".join(level) for level in levels(stage))
    structure = structure_of(stage)
    if is_follower(stage):
        found = [f"tiled like the stage computed inside it: {order}"]
    elif len(structure) >= TILED:
        found = [f"tiled {structure}: {order}"]
    else:
        found = [f"loops {'split and ' if structure else ''}ordered {' '.join(stage.loops)}"]
    written = [loop for loop in stage.loops if loop in unrolled]
    return found + ([f"{', '.join(written)} unrolled"] if written else [])


def _text(step: Step, stage: Stage) -> str:
    """What one step does; '' for an annotation without effect. A step of another package prints itself."""
    match step:
        case Pack():
            return f"reads {step.tensor} packed ahead of time, in the order of its loops"
        case PackInside():
            return f"reads {step.tensor} packed inside the kernel by an earlier loop nest, in the order of its loops"
        case CacheWrite():
            return "accumulated in a private tile and written once"
        case CacheRead():
            return f"a copy of {step.stage} for {', '.join(step.readers)}"
        case Rfactor():
            return f"partial results along {step.loop} (rfactor), combined by a second loop nest"
        case ComputeInline():
            return "inlined: computed where it is read"
        case ComputeAt():
            return f"computed inside {step.target} at loop {step.loop}"
        case ComputeRoot():
            return "computed in a separate loop nest"
        case Fuse():
            return f"{', '.join(step.loops)} fused into one loop"
        case Buffered():
            return f"{step.copies} copies, used in turn"
        case SetScope():
            return f"kept in {step.scope} memory"
        case StorageAlign():
            return f"rows padded to {step.offset} modulo {step.factor} elements"
        case Tensorize():
            return f"{step.lanes} and {step.group} computed by the instruction {step.intrinsic}"
        case Vectorize() | Parallel() | PragmaUnroll():
            return _annotation(step, stage)
    return str(step)


def _annotation(step: Vectorize | Parallel | PragmaUnroll, stage: Stage) -> str:
    if isinstance(step, Vectorize):
        if not step.amount:
            return "no vectors"
        return f"vectors {'of partial results along the reduction' if stage.kinds[step.loop] == 'reduce' else 'along'} {step.loop}"
    if isinstance(step, Parallel):
        loops = stage.loops[: step.amount] if isinstance(step.amount, int) else ()
        return f"{', '.join(loops)} in parallel" if loops else "on one thread"
    return f"reduction unrolled up to {step.limit} statements" if step.limit else ""
