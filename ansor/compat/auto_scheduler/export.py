"""From a schedule of ours to a state: our steps in terms of the 14 of TVM's auto-scheduler, so that its logs can hold what our search finds.

    Split, FollowSplit, Fuse, Reorder            SP, FSP (SP where no split has those lengths), FU, RE
    ComputeAt, ComputeInline, ComputeRoot        CA, CI, CR
    CacheWrite, CacheRead, Rfactor               CHW, CHR, RF
    Parallel(n)                                  FU of the n outermost loops, AN
    Vectorize, Unroll, PragmaUnroll              AN, AN, PR

Packing, instructions, aligned rows, and vectors along a reduction have no counterpart there.
"""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.stages import Iterator, IteratorKind
from ansor.compat.auto_scheduler.steps import FollowSplitStep, SplitStep
from ansor.compat.auto_scheduler.transform import followed_lengths
from ansor.errors import ScheduleError
from ansor.schedule import steps as ours
from ansor.schedule.sketch import Sketch

if TYPE_CHECKING:
    from ansor.compat.auto_scheduler.compute_dag import ComputeDAG


def state_of(dag: ComputeDAG, sketch: Sketch) -> State:
    """The state of a schedule. Lengths that are open stay open; open annotations are left out. Raises ScheduleError for steps without a counterpart."""
    export = _Export(dag)
    for step in sketch.steps:
        export.translate(step)
    return export.state


def _without(what: str) -> ScheduleError:
    return ScheduleError(f"asked to write a schedule in the steps of TVM's auto-scheduler, which have none for {what}; keep it in a record file of ours")


class _Export:
    """The state so far, whose stages and iterators know what they are called in steps of ours. splits: lengths -> the first split that has them."""

    def __init__(self, dag: ComputeDAG) -> None:
        self.state = dag.get_init_state()
        self.splits: dict[str, int] = {}

    def _stage(self, name: str) -> int:
        return next(number for number, stage in enumerate(self.state.stages) if stage.ours == name)

    def _find(self, name: str, loop: str) -> Iterator:
        found = next((one for one in self.state[self._stage(name)].iters if one.loops == (loop,)), None)
        if found is None:
            raise _without(f"loop {loop} of stage {name}, which was fused to run in parallel")
        return found

    @singledispatchmethod
    def translate(self, step: ours.Step) -> None:
        """One step. Raises ScheduleError when there is none for it."""
        raise _without({"PK": "packing", "PI": "packing", "TE": "instructions", "SA": "aligned rows"}.get(step.code, f"the step {type(step).__name__}"))

    @translate.register
    def _(self, step: ours.Split) -> None:
        lengths: list[int | None] = [None] * (step.parts - 1) if isinstance(step.lengths, str) else list(step.lengths)
        self.splits[str(step.lengths)] = len(self.state.transform_steps)
        self.state.split(self._stage(step.stage), self._find(step.stage, step.loop), lengths)

    @translate.register
    def _(self, step: ours.FollowSplit) -> None:
        stage, loop, source = self._stage(step.stage), self._find(step.stage, step.loop), self.splits.get(str(step.lengths))
        if source is not None:
            self.state.follow_split(stage, loop, source, step.parts - 1)
        elif isinstance(step.lengths, str):
            raise _without(f"loop {step.loop} of stage {step.stage}, which follows a split that is not there")
        else:
            self.state.split(stage, loop, followed_lengths(FollowSplitStep(0, 0, 0, step.parts - 1), [SplitStep(0, 0, None, step.lengths)]))

    @translate.register
    def _(self, step: ours.Fuse) -> None:
        number = self._stage(step.stage)
        fused = self.state.fuse(number, [self._find(step.stage, loop) for loop in step.loops])
        # One loop from now on, by the name that later steps have for it.
        self.state.state_object = self.state.state_object.as_one_loop(number, self.state[number].iters.index(fused))

    @translate.register
    def _(self, step: ours.Reorder) -> None:
        self.state.reorder(self._stage(step.stage), [self._find(step.stage, loop) for loop in step.loops])

    @translate.register
    def _(self, step: ours.ComputeAt) -> None:
        self.state.compute_at(self._stage(step.stage), self._stage(step.target), self._find(step.target, step.loop))

    @translate.register
    def _(self, step: ours.ComputeInline) -> None:
        self.state.compute_inline(self._stage(step.stage))

    @translate.register
    def _(self, step: ours.ComputeRoot) -> None:
        self.state.compute_root(self._stage(step.stage))

    @translate.register
    def _(self, step: ours.CacheWrite) -> None:
        self.state.cache_write(self._stage(step.stage), "local")

    @translate.register
    def _(self, step: ours.CacheRead) -> None:
        self.state.cache_read(self._stage(step.stage), step.suffix, [self._stage(reader) for reader in step.readers])

    @translate.register
    def _(self, step: ours.Rfactor) -> None:
        number, loop = self._stage(step.stage), self._find(step.stage, step.loop)
        stage = self.state[number]
        spatial, rest = [label for label, _ in stage.spatial], [one.label for one in stage.iters if one is not loop]
        if rest[: len(spatial)] != spatial or step.position > len(spatial):
            raise _without(f"partial results of stage {step.stage}, whose spatial loops were changed before")
        self.state.rfactor(number, loop, step.position)

    @translate.register
    def _(self, step: ours.Parallel) -> None:
        if isinstance(step.amount, str) or step.amount == 0:
            return
        number = self._stage(step.stage)
        outer = self.state[number].iters[: step.amount]
        self.state.parallel(number, self.state.fuse(number, outer) if len(outer) > 1 else outer[0])

    @translate.register
    def _(self, step: ours.Vectorize) -> None:
        if isinstance(step.amount, str) or step.amount == 0:
            return
        loop = self._find(step.stage, step.loop)
        if loop.iter_kind != IteratorKind.SPATIAL:
            raise _without(f"vectors along the reduction {step.loop} of stage {step.stage}")
        self.state.vectorize(self._stage(step.stage), loop)

    @translate.register
    def _(self, step: ours.Unroll) -> None:
        self.state.unroll(self._stage(step.stage), self._find(step.stage, step.loop))

    @translate.register
    def _(self, step: ours.PragmaUnroll) -> None:
        number = self._stage(step.stage)
        iters = self.state[number].iters
        if not isinstance(step.limit, str) and iters:
            self.state.pragma(number, iters[0], f"auto_unroll_max_step${step.limit}")
