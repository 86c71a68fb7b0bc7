"""Steps that choose how loops run (on several threads, as vectors, as an instruction, unrolled) and how rows are aligned in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.ir.intrinsics import intrinsic_named, matched
from ansor.schedule.state import Amount, FuseRelation, Root, SplitRelation, Stage, State
from ansor.schedule.step import Step, amount_of, register


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
        return replace(self, amount=amount_of(self.amount, numbers))


@register
@dataclass(frozen=True)
class Vectorize(Step):
    """Run the innermost loop as vectors; `amount` 0 leaves it unchanged. A reduction then runs in vectors of partial results, which are combined at its end.

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
        return replace(self, amount=amount_of(self.amount, numbers))


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
            raise ScheduleError(f"asked to compute stage {self.stage} with {self.intrinsic}, which no known target has; `intrinsics` of a target lists them")
        if stage.loops[-2:] != (self.lanes, self.group):
            raise ScheduleError(f"asked to compute loops {self.lanes}, {self.group} of stage {self.stage} with {self.intrinsic}; its innermost loops are "
                                f"{', '.join(stage.loops[-2:])}; reorder first")
        found = matched(stage.tensor, intrinsic)
        if found is None or (_axis_of(stage, self.lanes), _axis_of(stage, self.group)) != (found.lanes.name, found.group.name):
            raise ScheduleError(f"asked to compute loops {self.lanes}, {self.group} of stage {self.stage} with {self.intrinsic}, which sums products of "
                                f"{' and '.join(intrinsic.operands)} in {intrinsic.result}; the stage computes something else along them")
        if (self.group, intrinsic.group) not in {(r.parts[-1], r.lengths[-1]) for r in stage.relations if isinstance(r, SplitRelation) and r.lengths}:
            raise ScheduleError(f"asked to compute loop {self.group} of stage {self.stage} with {self.intrinsic}, which sums {intrinsic.group} elements; "
                                f"split it to that length")
        notes = stage.annotations
        vectorize, intrinsics = dict(notes.vectorize) | {self.lanes: 1}, dict(notes.intrinsics) | {self.group: intrinsic}
        return state.updated(replace(stage, annotations=replace(notes, vectorize=vectorize, intrinsics=intrinsics)))


def _axis_of(stage: Stage, loop: str) -> str:
    """The axis that a loop is part of, '' when it is part of several."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and loop in relation.parts:
            return _axis_of(stage, relation.parent)
        if isinstance(relation, FuseRelation) and loop == relation.fused:
            return ""
    return loop


@register
@dataclass(frozen=True)
class Unroll(Step):
    """Unroll a loop fully.

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
    """Let the code generator unroll loops of a stage as long as the body stays below `limit` statements."""

    code = "PR"
    limit: Amount

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        return state.updated(replace(stage, annotations=replace(stage.annotations, unroll_limit=self.limit)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, limit=amount_of(self.limit, numbers))


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
            raise ScheduleError(f"asked to align rows of {self.stage}, an output whose layout the caller determines; align an intermediate")
        return state.updated(replace(stage, storage=replace(stage.storage, align=(self.factor, self.offset))))
