"""Schedule steps. One class per step: it applies itself to a state, prints itself, and turns into JSON and back.

A number of a step may be open: then it is the name of a choice (see `ansor.schedule.choice`), and the step belongs to a sketch.
Docstrings show the loops before and after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import ClassVar

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.ir.intrinsics import intrinsic_named, matched
from ansor.schedule.state import (
    Amount,
    At,
    FuseRelation,
    Inlined,
    Lengths,
    Root,
    SplitRelation,
    Stage,
    State,
    initial_stage,
    redirected,
)
from ansor.te.expr import Axis, Binary, Const, Expr, Reduce
from ansor.te.fold import walk
from ansor.te.tensor import Compute, Read, Tensor

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Step(ABC):
    """Base of all steps. `code` names the step in JSON; the fields follow it in order."""

    code: ClassVar[str] = ""
    stage: str

    @abstractmethod
    def apply(self, state: State) -> State:
        """The state after the step. Raises ScheduleError when it does not fit."""

    def to_json(self) -> list[Json]:
        """`[code, field, ...]`."""
        return [self.code, *(_plain(getattr(self, f.name)) for f in fields(self))]

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        """The step with open numbers filled in."""
        return self

    def __str__(self) -> str:
        given = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return f"{type(self).__name__}({given})"


STEPS: dict[str, type[Step]] = {}


def _plain(value: object) -> Json:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value  # type: ignore[return-value]  # fields hold plain values


def _tuples(value: Json) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def register(step: type[Step]) -> type[Step]:
    """Make a step known to `step_from_json`; two steps may not share a code."""
    if step.code in STEPS:
        raise ScheduleError(f"asked to register step {step.__name__} under code {step.code!r}, which {STEPS[step.code].__name__} has")
    STEPS[step.code] = step
    return step


def step_from_json(entry: Json) -> Step:
    """The step written by `to_json`. Raises ScheduleError for anything else."""
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str) or entry[0] not in STEPS:
        raise ScheduleError(f"asked to read a step from {entry!r}; a step is [code, stage, ...] with a code of {', '.join(sorted(STEPS))}")
    kind = STEPS[entry[0]]
    given = [_tuples(value) for value in entry[1:]]
    names = [f.name for f in fields(kind)]
    if len(given) != len(names):
        raise ScheduleError(f"asked to read a {kind.__name__} step from {entry!r}; it has the fields {', '.join(names)}")
    return kind(*given)  # type: ignore[arg-type]  # checked when applied


def _lengths(value: Lengths, numbers: Mapping[str, tuple[int, ...]]) -> Lengths:
    return numbers[value] if isinstance(value, str) else value


def _amount(value: Amount, numbers: Mapping[str, tuple[int, ...]]) -> Amount:
    return numbers[value][0] if isinstance(value, str) else value


def _check_root_loops(state: State, stage: Stage, loops: tuple[str, ...], verb: str) -> None:
    for other in state.attached(stage.name):
        assert isinstance(other.placement, At)
        if other.placement.loop in loops:
            raise ScheduleError(
                f"asked to {verb} loop {other.placement.loop} of stage {stage.name}, where stage {other.name} is computed; do this before compute_at"
            )


@register
@dataclass(frozen=True)
class Split(Step):
    """Cut a loop into parts; `lengths` are those of all parts but the outermost, `parts` their number plus one.

    before   for i in 512
    after    for i_0 in 16:  for i_1 in 4:  for i_2 in 8          (lengths 4, 8)
    """

    code = "SP"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        return _cut(state, self.stage, self.loop, self.lengths, self.parts, outer=False)

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=_lengths(self.lengths, numbers))


@register
@dataclass(frozen=True)
class SplitOuter(Step):
    """Cut a loop into parts; `lengths` are those of all parts but the innermost, which gets as long as it takes.

    before   for i in 512
    after    for i_0 in 4:  for i_1 in 8:  for i_2 in 16          (lengths 4, 8)
    """

    code = "SPO"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        return _cut(state, self.stage, self.loop, self.lengths, self.parts, outer=True)

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=_lengths(self.lengths, numbers))


def _cut(state: State, name: str, loop: str, lengths: Lengths, parts: int, *, outer: bool) -> State:
    stage = state[name]
    stage.check_loop(loop, "split")
    given = () if isinstance(lengths, str) else lengths
    if not isinstance(lengths, str) and (len(given) != parts - 1 or any(not isinstance(n, int) or n < 1 for n in given)):
        raise ScheduleError(f"asked to split loop {loop} of {name} into {parts} parts of lengths {given}; give parts - 1 lengths >= 1")
    names = tuple(f"{loop}_{k}" for k in range(parts))
    _check_root_loops(state, stage, (loop,), "split")
    return state.updated(_split(stage, loop, names, SplitRelation(loop, names, lengths, outer=outer)))


def _split(stage: Stage, loop: str, names: tuple[str, ...], relation: SplitRelation) -> Stage:
    k = stage.loops.index(loop)
    kinds = dict(stage.kinds) | dict.fromkeys(names, stage.kinds[loop])
    return replace(stage, loops=(*stage.loops[:k], *names, *stage.loops[k + 1 :]), kinds=kinds, relations=(*stage.relations, relation))


@register
@dataclass(frozen=True)
class FollowSplit(Step):
    """Cut a loop as another split was cut: the first `parts - 2` lengths of it, and the product of the others as the last.

    before   for i in 512                               (followed: lengths 4, 8, 2)
    after    for i_0 in 8:  for i_1 in 4:  for i_2 in 16          (parts = 3)
    """

    code = "FSP"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "split")
        if self.parts < 2:
            raise ScheduleError(f"asked to split loop {self.loop} of {self.stage} into {self.parts} parts; it takes at least 2")
        names = tuple(f"{self.loop}_{k}" for k in range(self.parts))
        _check_root_loops(state, stage, (self.loop,), "split")
        return state.updated(_split(stage, self.loop, names, SplitRelation(self.loop, names, self.lengths, follow=self.parts - 1)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=_lengths(self.lengths, numbers))


@register
@dataclass(frozen=True)
class Fuse(Step):
    """Make one loop of consecutive loops.

    before   for i in 4:  for j in 8
    after    for i_j in 32
    """

    code = "FU"
    loops: tuple[str, ...]

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        for loop in self.loops:
            stage.check_loop(loop, "fuse")
        k = stage.loops.index(self.loops[0])
        if len(self.loops) < 2 or stage.loops[k : k + len(self.loops)] != self.loops:
            raise ScheduleError(f"asked to fuse loops {', '.join(self.loops)} of stage {self.stage}, which are not consecutive in {', '.join(stage.loops)}")
        if len({stage.kinds[loop] for loop in self.loops}) != 1:
            raise ScheduleError(f"asked to fuse loops {', '.join(self.loops)} of stage {self.stage}, which mix spatial and reduction loops; fuse one kind")
        _check_root_loops(state, stage, self.loops[:-1], "fuse")
        fused = "_".join(self.loops) + "_f"
        moved = state.updated(
            replace(
                stage,
                loops=(*stage.loops[:k], fused, *stage.loops[k + len(self.loops) :]),
                kinds=dict(stage.kinds) | {fused: stage.kinds[self.loops[0]]},
                relations=(*stage.relations, FuseRelation(self.loops, fused)),
            )
        )
        for other in state.attached(self.stage):
            if isinstance(other.placement, At) and other.placement.loop == self.loops[-1]:
                moved = moved.updated(replace(moved[other.name], placement=At(self.stage, fused)))
        return moved


@register
@dataclass(frozen=True)
class Reorder(Step):
    """Put the loops of a stage in another order; all are listed.

    before   for i:  for j:  for k
    after    for i:  for k:  for j
    """

    code = "RE"
    loops: tuple[str, ...]

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if sorted(self.loops) != sorted(stage.loops):
            raise ScheduleError(f"asked to order stage {self.stage} as {', '.join(self.loops)}, but its loops are {', '.join(stage.loops)}; list each once")
        if state.attached(self.stage):
            raise ScheduleError(f"asked to reorder stage {self.stage}, inside which other stages are computed; reorder before compute_at")
        return state.updated(replace(stage, loops=self.loops))


@register
@dataclass(frozen=True)
class ComputeAt(Step):
    """Compute a stage inside a loop of a stage that reads it, only the region needed there.

    before   for i: p[i] = ...              for j: c[j] = p[j]
    after    for j_0:  for i in region: p[i] = ...  for j_1: c[j] = p[j]
    """

    code = "CA"
    target: str
    loop: str

    def apply(self, state: State) -> State:
        stage, target = state[self.stage], state[self.target]
        target.check_loop(self.loop, f"compute {self.stage} at")
        if state.is_output(self.stage):
            raise ScheduleError(f"asked to compute {self.stage} inside {self.target}, but it is an output, which is kept whole; leave it at root")
        if stage.kept and target.kinds[self.loop] == "reduce":
            raise ScheduleError(
                f"asked to compute the partial results {self.stage} at loop {self.loop} of {self.target}, which combines them: each iteration would compute "
                "all of them again; choose a spatial loop"
            )
        readers = state.consumers(self.stage)
        if not readers or not all(_inside(state, reader.name, self.target, self.loop) for reader in readers):
            names = ", ".join(reader.name for reader in readers) or "nobody"
            raise ScheduleError(
                f"asked to compute {self.stage} at loop {self.loop} of {self.target}, but it is read by {names}; choose a loop around all readers"
            )
        return _placed(state, replace(stage, placement=At(self.target, self.loop)))


def _placed(state: State, stage: Stage) -> State:
    """The state with a stage moved, unless it has to stay whole or that takes a reader away from something computed around it."""
    packed_by = state.packed_by(stage.name)
    if packed_by:
        raise ScheduleError(f"asked to move stage {stage.name}, of which stage {packed_by[0].name} makes a packed copy; only a stage at root can be packed")
    moved = state.updated(stage)
    for other in moved.stages:
        place = other.placement
        if isinstance(place, At) and not all(_inside(moved, reader.name, place.stage, place.loop) for reader in moved.consumers(other.name)):
            raise ScheduleError(
                f"asked to move stage {stage.name}, after which stage {other.name}, computed at loop {place.loop} of {place.stage}, would be read outside it; "
                f"move {other.name} first"
            )
    return moved


def _inside(state: State, reader: str, target: str, loop: str) -> bool:
    """True when stage `reader` runs inside loop `loop` of `target`."""
    if reader == target:
        return True
    placement = state[reader].placement
    if not isinstance(placement, At):
        return False
    if placement.stage == target:
        loops = state[target].loops
        return loops.index(placement.loop) >= loops.index(loop)
    return _inside(state, placement.stage, target, loop)


@register
@dataclass(frozen=True)
class ComputeInline(Step):
    """Compute a stage again wherever it is read.

    before   b[i] = a[i] + 1      c[i] = b[i] * 2
    after                         c[i] = (a[i] + 1) * 2
    """

    code = "CI"

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if access.has_reduction(stage.tensor):
            raise ScheduleError(f"asked to inline stage {self.stage}, which is a reduction; compute it at a loop instead")
        if state.is_output(self.stage):
            raise ScheduleError(f"asked to inline stage {self.stage}, which is an output; leave it at root")
        if state.attached(self.stage):
            raise ScheduleError(f"asked to inline stage {self.stage}, inside which {state.attached(self.stage)[0].name} is computed; move that one first")
        if stage.packed or stage.packed_inside:
            names = ", ".join((*stage.packed, *stage.packed_inside))
            raise ScheduleError(f"asked to inline stage {self.stage}, whose loops order the packed copy of {names}; leave it at root or do not pack")
        return _placed(state, replace(stage, placement=Inlined()))


@register
@dataclass(frozen=True)
class ComputeRoot(Step):
    """Compute a stage in a nest of its own: takes back compute_at and compute_inline."""

    code = "CR"

    def apply(self, state: State) -> State:
        return _placed(state, replace(state[self.stage], placement=Root()))


def _copy_of(tensor: Tensor, name: str) -> Tensor:
    """A tensor `name` of the same shape that copies `tensor`."""
    labels = [axis.name for axis in tensor.compute.axes] if tensor.compute else [f"i{k}" for k in range(tensor.ndim)]
    axes = tuple(Axis(label, extent) for label, extent in zip(labels, tensor.shape, strict=True))
    return Tensor(name, tensor.shape, tensor.dtype, Compute(axes, (), Read(tensor, axes, tensor.dtype)))


def _new_name(state: State, name: str) -> str:
    taken = {tensor.name for tensor in state.dag.stages} | {stage.name for stage in state.stages}
    count, candidate = 1, name
    while candidate in taken:
        candidate, count = f"{name}_{count}", count + 1
    return candidate


@register
@dataclass(frozen=True)
class CacheWrite(Step):
    """Accumulate in a private tile, copy out once. The new stage is called `<stage>_local`.

    before   for i, j, k:  c[i, j] += a[i, k] * b[k, j]
    after    for i, j, k:  c_local[i, j] += a[i, k] * b[k, j]
             for i, j:     c[i, j] = c_local[i, j]
    """

    code = "CHW"

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if stage.relations or stage.role or not isinstance(stage.placement, Root) or state.attached(self.stage):
            raise ScheduleError(f"asked to cache-write stage {self.stage}, which was changed or moved already; do this first")
        local = replace(stage.tensor, name=_new_name(state, f"{self.stage}_local"))
        cached = replace(initial_stage(local), packed=stage.packed, packed_inside=stage.packed_inside, role="cache_write")
        copy = replace(_copy_of(local, self.stage), attrs=stage.tensor.attrs, tag=stage.tensor.tag)
        return state.inserted(self.stage, cached).updated(initial_stage(copy))


@register
@dataclass(frozen=True)
class CacheRead(Step):
    """Copy a tensor for some of its readers. The new stage is called `<tensor>_<suffix>`; `stage` is the tensor copied.

    before   for i, j:  c[i, j] = a[j]
    after    for j:     a_local[j] = a[j]
             for i, j:  c[i, j] = a_local[j]
    """

    code = "CHR"
    readers: tuple[str, ...]
    suffix: str = "local"

    def apply(self, state: State) -> State:
        tensor = state[self.stage].tensor if self.stage in state else state.dag.stage(self.stage)
        if self.stage in state and state[self.stage].kept:
            raise ScheduleError(f"asked to copy {self.stage}, which holds partial results of an rfactor; compute it at a loop of its reader instead")
        for reader in self.readers:
            if not any(read.tensor.name == self.stage for read in access.reads(state[reader].tensor)):
                raise ScheduleError(f"asked to copy {self.stage} for stage {reader}, which does not read it; name stages that do")
            if self.stage in (*state[reader].packed, *state[reader].packed_inside):
                raise ScheduleError(f"asked to copy {self.stage} for stage {reader}, which reads it packed already; copy it first, and pack the copy")
        if not self.readers:
            raise ScheduleError(f"asked to copy {self.stage} for no stage; name at least one reader")
        copy = _copy_of(tensor, _new_name(state, f"{self.stage}_{self.suffix}"))
        first = min(self.readers, key=state.position)
        moved = state.inserted(first, replace(initial_stage(copy), role="cache_read"))
        for reader in self.readers:
            stage = moved[reader]
            moved = moved.updated(replace(stage, tensor=redirected(stage.tensor, self.stage, copy)))
        return _placed(moved, moved[copy.name])


@register
@dataclass(frozen=True)
class Rfactor(Step):
    """Store partial results of one reduction loop, combine them in a second stage. The new stage is called `<stage>_rf`.

    before   for i:  for k_0:  for k_1:  c[i] += a[i, k]
    after    for i:  for k_1:  for k_0:  c_rf[i, k_1] += a[i, k]
             for i:  for k_1:  c[i] += c_rf[i, k_1]
    """

    code = "RF"
    loop: str
    position: int

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "rfactor")
        body = stage.tensor.compute.body if stage.tensor.compute else None
        if not isinstance(body, Reduce) or stage.kinds[self.loop] != "reduce":
            raise ScheduleError(f"asked to rfactor loop {self.loop} of stage {self.stage}, which is not a reduction loop; name one")
        if stage.role or not isinstance(stage.placement, Root) or state.attached(self.stage):
            raise ScheduleError(f"asked to rfactor stage {self.stage}, which was cached, factored or moved already, or has stages inside; do this first")
        if not 0 <= self.position <= len(stage.tensor.shape):
            raise ScheduleError(f"asked to rfactor stage {self.stage} to position {self.position}; it takes 0..{len(stage.tensor.shape)}")
        rest = [loop for loop in stage.loops if loop != self.loop]
        name = _new_name(state, f"{self.stage}_rf")
        partial = replace(
            stage,
            tensor=replace(stage.tensor, name=name),
            loops=(*rest[: self.position], self.loop, *rest[self.position :]),
            kinds=dict(stage.kinds) | {self.loop: "spatial"},
            kept=(self.loop,),
            role="rfactor",
        )
        return state.inserted(self.stage, partial).updated(_combining(stage, partial, self.loop, body))


def _combining(stage: Stage, partial: Stage, loop: str, body: Reduce) -> Stage:
    """The second half of rfactor: reduces over the kept loop."""
    assert stage.tensor.compute is not None
    axes = tuple(Axis(axis.name, axis.extent) for axis in stage.tensor.compute.axes)
    kept = Axis(loop, 1, "reduce")
    source = Tensor(partial.name, (*stage.tensor.shape, 1), stage.tensor.dtype, partial.tensor.compute)
    read: Expr = Read(source, (*axes, kept), stage.tensor.dtype)
    compute = Compute(axes, (kept,), Reduce(body.combiner, read, (kept,), body.dtype))
    fresh = initial_stage(replace(stage.tensor, compute=compute))
    return replace(fresh, borrowed={loop: (partial.name, loop)}, role="rfactor_final")


@register
@dataclass(frozen=True)
class Parallel(Step):
    """Run the `amount` outermost loops of a root stage as one parallel loop.

    before   for i in 4:  for j in 8
    after    parallel for i, j in 32          (amount 2)
    """

    code = "PA"
    amount: Amount

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if isinstance(self.amount, int):
            outer = stage.loops[: self.amount]
            if self.amount < 0 or len(outer) < self.amount or any(stage.kinds[loop] != "spatial" for loop in outer):
                raise ScheduleError(
                    f"asked to run {self.amount} outer loops of stage {self.stage} in parallel; its loops are {', '.join(stage.loops)}, and only leading "
                    "spatial loops can be"
                )
        if not isinstance(stage.placement, Root):
            raise ScheduleError(f"asked to run stage {self.stage} in parallel, which is computed inside another; annotate that one")
        return state.updated(replace(stage, annotations=replace(stage.annotations, parallel=self.amount)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, amount=_amount(self.amount, numbers))


@register
@dataclass(frozen=True)
class Vectorize(Step):
    """Run the innermost loop as vectors; `amount` 0 leaves it as it is. A reduction then runs in vectors of partial results, which are combined at its end.

    before   for j in 16:  c[j] = a[j]                    for k in 64:  c[i] += a[i, k]
    after    c[0:16] = a[0:16]                            for k in 0, 16, 32, 48:  v[0:16] += a[i, k : k + 16]
                                                          c[i] = v[0] + ... + v[15]
    """

    code = "VE"
    loop: str
    amount: Amount = 1

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "vectorize")
        if self.loop != stage.loops[-1]:
            raise ScheduleError(f"asked to vectorize loop {self.loop} of stage {self.stage}, which is not its innermost ({stage.loops[-1]}); reorder first")
        vectorize = dict(stage.annotations.vectorize) | {self.loop: self.amount}
        return state.updated(replace(stage, annotations=replace(stage.annotations, vectorize=vectorize)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, amount=_amount(self.amount, numbers))


@register
@dataclass(frozen=True)
class Tensorize(Step):
    """Compute the two innermost loops with an instruction: the spatial loop `lanes`, as vectors, and the reduction loop `group`.

    before   for j in 16:  for k_1 in 4:  c[j] += int32(a[k_1]) * int32(b[k_1, j])
    after    c[0:16] = dot(c[0:16], a[0:4], b[0:4, 0:16])
    """

    code = "TE"
    lanes: str
    group: str
    intrinsic: str

    def apply(self, state: State) -> State:
        stage, intrinsic = state[self.stage], intrinsic_named(self.intrinsic)
        if intrinsic is None:
            raise ScheduleError(f"asked to compute stage {self.stage} with {self.intrinsic}, which is no intrinsic; ansor.ir.intrinsics lists them")
        if stage.loops[-2:] != (self.lanes, self.group):
            raise ScheduleError(f"asked to compute loops {self.lanes}, {self.group} of stage {self.stage} with {self.intrinsic}; its innermost loops are "
                                f"{', '.join(stage.loops[-2:])}; reorder first")
        found = matched(stage.tensor, intrinsic)
        if found is None or (_axis_of(stage, self.lanes), _axis_of(stage, self.group)) != (found.lanes.name, found.group.name):
            raise ScheduleError(f"asked to compute loops {self.lanes}, {self.group} of stage {self.stage} with {self.intrinsic}, which sums products of "
                                f"{' and '.join(intrinsic.operands)} in int32; the stage is something else along them")
        if (self.group, intrinsic.group) not in {(r.parts[-1], r.lengths[-1]) for r in stage.relations if isinstance(r, SplitRelation) and r.lengths}:
            raise ScheduleError(f"asked to compute loop {self.group} of stage {self.stage} with {self.intrinsic}, which sums {intrinsic.group} elements; "
                                f"split it to that length")
        notes = stage.annotations
        vectorize, intrinsics = dict(notes.vectorize) | {self.lanes: 1}, dict(notes.intrinsics) | {self.group: self.intrinsic}
        return state.updated(replace(stage, annotations=replace(notes, vectorize=vectorize, intrinsics=intrinsics)))


def _axis_of(stage: Stage, loop: str) -> str:
    """The axis a loop is a part of, '' when it is one of several."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and loop in relation.parts:
            return _axis_of(stage, relation.parent)
        if isinstance(relation, FuseRelation) and loop == relation.fused:
            return ""
    return loop


@register
@dataclass(frozen=True)
class Unroll(Step):
    """Write a loop out.

    before   for j in 2:  c[j] = a[j]
    after    c[0] = a[0];  c[1] = a[1]
    """

    code = "UN"
    loop: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "unroll")
        if self.loop in stage.annotations.unroll:
            raise ScheduleError(f"asked to unroll loop {self.loop} of stage {self.stage} twice")
        return state.updated(replace(stage, annotations=replace(stage.annotations, unroll=(*stage.annotations.unroll, self.loop))))


@register
@dataclass(frozen=True)
class PragmaUnroll(Step):
    """Let the generator unroll loops of a stage as long as the body stays below `limit` statements."""

    code = "PR"
    limit: Amount

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        return state.updated(replace(stage, annotations=replace(stage.annotations, unroll_limit=self.limit)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, limit=_amount(self.limit, numbers))


@register
@dataclass(frozen=True)
class StorageAlign(Step):
    """Pad rows of a stage's buffer so that their length is `offset` modulo `factor` elements.

    before   buffer[8, 30]
    after    buffer[8, 32]                     (factor 32, offset 0)
    """

    code = "SA"
    factor: int
    offset: int

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            raise ScheduleError(f"asked to align rows of {self.stage} to {self.offset} modulo {self.factor}; give factor >= 1 and 0 <= offset < factor")
        if state.is_output(self.stage):
            raise ScheduleError(f"asked to align rows of {self.stage}, an output whose layout the caller gives; align an intermediate")
        return state.updated(replace(stage, align=(self.factor, self.offset)))


@register
@dataclass(frozen=True)
class Pack(Step):
    """Store a constant input in the order in which this stage's loops walk over it, ahead of time.

    before   for j_0, k, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:  ... b_packed[j_0, k, j_1]
    """

    code = "PK"
    tensor: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not packable(state, stage, self.tensor):
            raise ScheduleError(
                f"asked to pack {self.tensor} for stage {self.stage}; that takes a constant that only this stage reads, once, at a place that moves evenly "
                "with the stage's axes, so that a copy in their order is no larger than the constant"
            )
        return state.updated(replace(stage, packed=(*stage.packed, self.tensor)))


@register
@dataclass(frozen=True)
class PackInside(Step):
    """Copy a tensor that is read again and again into the order in which this stage's loops walk over it, in a nest before this one, zeros beyond its end.

    before   for i_0, j_0, k, i_1, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:            b_packed[j_0, k, j_1] = b[k, j_0 * 16 + j_1]
             for i_0, j_0, k, i_1, j_1:  ... b_packed[j_0, k, j_1]
    """

    code = "PI"
    tensor: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not packable_inside(state, stage, self.tensor):
            raise ScheduleError(
                f"asked to pack {self.tensor} inside the kernel for stage {self.stage}; that takes an input, or a stage at root, that this stage reads once, "
                "at one own axis per dimension"
            )
        return state.updated(replace(stage, packed_inside=(*stage.packed_inside, self.tensor)))


def packable(state: State, stage: Stage, name: str) -> bool:
    """True when `name` is a constant that only `stage` reads, once, at a place that moves evenly with the axes, and that a copy would not be larger than."""
    tensor = next((t for t in state.dag.inputs if t.name == name), None)
    if tensor is None or not tensor.constant or name in stage.packed:
        return False
    return [reader.name for reader in state.readers(name)] == [stage.name] and _reads_evenly(stage, tensor)


def _reads_evenly(stage: Stage, tensor: Tensor) -> bool:
    found = [read for read in access.reads(stage.tensor) if read.tensor is tensor]
    if len(found) != 1 or tensor.ndim == 0:
        return False
    nodes = [node for index in found[0].indices for node in walk(index)]
    if not all(isinstance(node, Axis | Const) or (isinstance(node, Binary) and node.op in ("add", "sub", "mul")) for node in nodes):
        return False
    axes = list({id(node): node for node in nodes if isinstance(node, Axis)}.values())
    even = all(access.step_of(index, axis) is not None for index in found[0].indices for axis in axes)
    return even and len(axes) > 0 and all(axis.start == 0 for axis in axes) and prod(axis.extent for axis in axes) <= tensor.size


def packable_inside(state: State, stage: Stage, name: str) -> bool:
    """True when `name` is an input, or a stage at root, that `stage` reads in one place, each dimension at one axis of its own."""
    whole = any(tensor.name == name for tensor in state.dag.inputs) or any(other.name == name and isinstance(other.placement, Root) for other in state.stages)
    return whole and name not in stage.packed_inside and name not in stage.packed and _reads_at_axes(stage, name)


def _reads_at_axes(stage: Stage, name: str) -> bool:
    found = [read for read in access.reads(stage.tensor) if read.tensor.name == name]
    if len(found) != 1:
        return False
    read = found[0]
    # A dimension of one element has no loop to be at: a kernel of 1x1.
    walked = [index for index, extent in zip(read.indices, read.tensor.shape, strict=True) if not (extent == 1 and isinstance(index, Const))]
    axes = [index for index in walked if isinstance(index, Axis) and index.start == 0]
    return len(axes) == len(walked) > 0 and len({id(axis) for axis in axes}) == len(axes)
