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
from ansor.compat.auto_scheduler.stages import Iterator
from ansor.compat.auto_scheduler.steps import FollowSplitStep, SplitStep
from ansor.compat.auto_scheduler.transform import followed_lengths
from ansor.errors import ScheduleError
from ansor.schedule import steps as ours
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import initial_state
from ansor.te.tensor import Tensor

if TYPE_CHECKING:
    from ansor.compat.auto_scheduler.compute_dag import ComputeDAG


def state_of(dag: ComputeDAG, sketch: Sketch) -> State:
    """The state of a schedule. Lengths that are open stay open; open annotations are left out. Raises ScheduleError for steps without a counterpart."""
    return exported(dag, sketch)[0]


def _without(what: str) -> ScheduleError:
    return ScheduleError(f"asked to write a schedule in the steps of TVM's auto-scheduler, which have none for {what}; keep it in a record file of ours")


def exported(dag: ComputeDAG, sketch: Sketch) -> tuple[State, dict[str, int]]:
    """The state of a schedule, and the number that each stage of ours has there. Raises ScheduleError as `state_of`."""
    export = _Export(dag)
    for step in sketch.steps:
        export.take(step)
    return export.state, {name: export.state.stage_id(tensor) for name, tensor in export.tensors.items()}


class _Export:
    """Our state beside theirs. tensors: our stage -> what names it there; loops: our stage -> our loop -> the name of its iterator."""

    def __init__(self, dag: ComputeDAG) -> None:
        self.state = dag.get_init_state()
        self.ours = initial_state(dag.dag)
        self.splits: dict[str, int] = {}
        self.tensors: dict[str, Tensor] = {dag.renamed[id(op)].name: op for op in dag.ops}
        self.loops: dict[str, dict[str, str]] = {}
        for stage in self.ours.stages:
            self._met(stage.name)

    def take(self, step: ours.Step) -> None:
        """One step. Raises ScheduleError when there is none for it."""
        after = step.apply(self.ours)
        self.translate(step)
        before, self.ours = {stage.name for stage in self.ours.stages}, after
        for stage in after.stages:
            if stage.name not in before:
                self._met(stage.name)

    def _met(self, name: str) -> None:
        """A stage as it is now: loops stand in one order here and there."""
        stage = self.ours[name]
        self.loops[name] = {loop: one.name for loop, one in zip(stage.loops, self.state[self.tensors[name]].iters, strict=True)}

    def _find(self, stage: str, loop: str) -> Iterator:
        name = self.loops[stage].get(loop)
        found = [one for one in self.state[self.tensors[stage]].iters if one.name == name]
        if len(found) != 1:
            raise _without(f"loop {loop} of stage {stage}, which was fused to run in parallel")
        return found[0]

    def _named(self, stage: str, parts: list[Iterator], names: list[str]) -> None:
        self.loops[stage].update(zip(names, (one.name for one in parts), strict=True))

    @singledispatchmethod
    def translate(self, step: ours.Step) -> None:
        """One step, before it is applied to ours."""
        raise _without({"PK": "packing", "PI": "packing", "TE": "instructions", "SA": "aligned rows"}.get(step.code, f"the step {type(step).__name__}"))

    @translate.register
    def _(self, step: ours.Split) -> None:
        lengths: list[int | None] = [None] * (step.parts - 1) if isinstance(step.lengths, str) else list(step.lengths)
        self.splits[str(step.lengths)] = len(self.state.transform_steps)
        parts = self.state.split(self.tensors[step.stage], self._find(step.stage, step.loop), lengths)
        self._named(step.stage, parts, [f"{step.loop}_{k}" for k in range(step.parts)])

    @translate.register
    def _(self, step: ours.FollowSplit) -> None:
        names, loop, tensor = [f"{step.loop}_{k}" for k in range(step.parts)], self._find(step.stage, step.loop), self.tensors[step.stage]
        source = self.splits.get(str(step.lengths))
        if source is not None:
            self._named(step.stage, self.state.follow_split(tensor, loop, source, step.parts - 1), names)
            return
        if isinstance(step.lengths, str):
            raise _without(f"loop {step.loop} of stage {step.stage}, which follows a split that is not there")
        given = SplitStep(0, 0, None, step.lengths)
        self._named(step.stage, self.state.split(tensor, loop, followed_lengths(FollowSplitStep(0, 0, 0, step.parts - 1), [given])), names)

    @translate.register
    def _(self, step: ours.Fuse) -> None:
        fused = self.state.fuse(self.tensors[step.stage], [self._find(step.stage, loop) for loop in step.loops])
        self._named(step.stage, [fused], [step.apply(self.ours)[step.stage].relations[-1].fused])  # type: ignore[union-attr]  # the relation of a Fuse

    @translate.register
    def _(self, step: ours.Reorder) -> None:
        self.state.reorder(self.tensors[step.stage], [self._find(step.stage, loop) for loop in step.loops])

    @translate.register
    def _(self, step: ours.ComputeAt) -> None:
        self.state.compute_at(self.tensors[step.stage], self.tensors[step.target], self._find(step.target, step.loop))

    @translate.register
    def _(self, step: ours.ComputeInline) -> None:
        self.state.compute_inline(self.tensors[step.stage])

    @translate.register
    def _(self, step: ours.ComputeRoot) -> None:
        self.state.compute_root(self.tensors[step.stage])

    @translate.register
    def _(self, step: ours.CacheWrite) -> None:
        private = self.state.cache_write(self.tensors[step.stage], "local")
        self._new(step, private)
        self.loops[step.stage] = {loop: loop for loop in step.apply(self.ours)[step.stage].loops}
        self._renamed(step)

    @translate.register
    def _(self, step: ours.CacheRead) -> None:
        copy = self.state.cache_read(self.tensors[step.stage], step.suffix, [self.tensors[reader] for reader in step.readers])
        self._new(step, copy)

    @translate.register
    def _(self, step: ours.Rfactor) -> None:
        stage = self.ours[step.stage]
        assert stage.tensor.compute is not None
        spatial = [axis.name for axis in stage.tensor.compute.axes]
        rest = [loop for loop in stage.loops if loop != step.loop]
        if rest[: len(spatial)] != spatial or step.position > len(spatial):
            raise _without(f"partial results of stage {step.stage}, whose spatial loops were changed before")
        partial = self.state.rfactor(self.tensors[step.stage], self._find(step.stage, step.loop), step.position)
        self._new(step, partial)
        self._renamed(step)

    def _new(self, step: ours.Step, tensor: Tensor) -> None:
        """A step makes one stage."""
        known = {stage.name for stage in self.ours.stages}
        (name,) = (stage.name for stage in step.apply(self.ours).stages if stage.name not in known)
        self.tensors[name] = tensor

    def _renamed(self, step: ours.Step) -> None:
        """The stage that a step starts anew."""
        iters, stage = self.state[self.tensors[step.stage]].iters, step.apply(self.ours)[step.stage]
        self.loops[step.stage] = {loop: one.name for loop, one in zip(stage.loops, iters, strict=True)}

    @translate.register
    def _(self, step: ours.Parallel) -> None:
        if isinstance(step.amount, str) or step.amount == 0:
            return
        tensor, loops = self.tensors[step.stage], self.ours[step.stage].loops[: step.amount]
        outer = [self._find(step.stage, loop) for loop in loops]
        self.state.parallel(tensor, self.state.fuse(tensor, outer) if len(outer) > 1 else outer[0])

    @translate.register
    def _(self, step: ours.Vectorize) -> None:
        if isinstance(step.amount, str) or step.amount == 0:
            return
        if self.ours[step.stage].kinds[step.loop] != "spatial":
            raise _without(f"vectors along the reduction {step.loop} of stage {step.stage}")
        self.state.vectorize(self.tensors[step.stage], self._find(step.stage, step.loop))

    @translate.register
    def _(self, step: ours.Unroll) -> None:
        self.state.unroll(self.tensors[step.stage], self._find(step.stage, step.loop))

    @translate.register
    def _(self, step: ours.PragmaUnroll) -> None:
        iters = self.state[self.tensors[step.stage]].iters
        if not isinstance(step.limit, str) and iters:
            self.state.pragma(self.tensors[step.stage], iters[0], f"auto_unroll_max_step${step.limit}")
