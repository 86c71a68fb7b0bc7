"""Translates our schedules to states: our steps become TVM's 14 steps, so that TVM's logs can hold the programs that our search finds.

    Split, FollowSplit, Fuse, Reorder            SP, FSP (SP if no split has those lengths), FU, RE
    ComputeAt, ComputeInline, ComputeRoot        CA, CI, CR
    CacheWrite, CacheRead, Rfactor               CHW, CHR, RF
    Parallel(n)                                  FU of the n outermost loops, AN
    Vectorize, Unroll, PragmaUnroll              AN, AN, PR

Packing, instructions, aligned rows, and vectors along a reduction have no counterpart in TVM.
"""

from __future__ import annotations

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
    """The state of a schedule. Keeps open lengths open, and leaves out open annotations. Raises ScheduleError for steps without a counterpart."""
    export = _Export(dag)
    for step in sketch.steps:
        export.translate(step)
    return export.state


def without(what: str) -> ScheduleError:
    """The error for a program that no log of TVM can hold."""
    return ScheduleError(f"TVM's steps cannot express {what}; keep such a program in a record file")


class _Export:
    """The state so far. Its stages and iterators have the names that our steps use. splits: lengths -> the first split with these lengths."""

    def __init__(self, dag: ComputeDAG) -> None:
        self.state = dag.get_init_state()
        self.splits: dict[str, int] = {}

    def _stage(self, name: str) -> int:
        return next(number for number, stage in enumerate(self.state.stages) if stage.ours == name)

    def _find(self, name: str, loop: str) -> Iterator:
        found = next((one for one in self.state[self._stage(name)].iters if one.loops == (loop,)), None)
        if found is None:
            raise without(f"loop {loop} of stage {name}, which was fused to run in parallel")
        return found

    def translate(self, step: ours.Step) -> None:
        """Translate one step. Raises ScheduleError if it has no counterpart."""
        number = self._stage(step.stage)
        match step:
            case ours.Split():
                lengths: list[int | None] = [None] * (step.parts - 1) if isinstance(step.lengths, str) else list(step.lengths)
                self.splits[str(step.lengths)] = len(self.state.transform_steps)
                self.state.split(number, self._find(step.stage, step.loop), lengths)
            case ours.FollowSplit():
                self._follow_split(number, step)
            case ours.Fuse():
                fused = self.state.fuse(number, [self._find(step.stage, loop) for loop in step.loops])
                # Later steps treat it as one loop, under this name.
                self.state.state_object = self.state.state_object.as_one_loop(number, self.state[number].iters.index(fused))
            case ours.Reorder():
                self.state.reorder(number, [self._find(step.stage, loop) for loop in step.loops])
            case ours.ComputeAt():
                self.state.compute_at(number, self._stage(step.target), self._find(step.target, step.loop))
            case ours.ComputeInline():
                self.state.compute_inline(number)
            case ours.ComputeRoot():
                self.state.compute_root(number)
            case ours.CacheWrite():
                self.state.cache_write(number, "local")
            case ours.CacheRead():
                self.state.cache_read(number, step.suffix, [self._stage(reader) for reader in step.readers])
            case ours.Rfactor():
                self._rfactor(number, step)
            case _:
                self._annotate(number, step)

    def _follow_split(self, number: int, step: ours.FollowSplit) -> None:
        loop, source = self._find(step.stage, step.loop), self.splits.get(str(step.lengths))
        if source is not None:
            self.state.follow_split(number, loop, source, step.parts - 1)
        elif isinstance(step.lengths, str):
            raise without(f"loop {step.loop} of stage {step.stage}, which follows a missing split")
        else:
            self.state.split(number, loop, followed_lengths(FollowSplitStep(0, 0, 0, step.parts - 1), [SplitStep(0, 0, None, step.lengths)]))

    def _rfactor(self, number: int, step: ours.Rfactor) -> None:
        stage, loop = self.state[number], self._find(step.stage, step.loop)
        spatial, rest = [label for label, _ in stage.spatial], [one.label for one in stage.iters if one is not loop]
        if rest[: len(spatial)] != spatial or step.position > len(spatial):
            raise without(f"partial results of stage {step.stage}, whose spatial loops were already changed")
        self.state.rfactor(number, loop, step.position)

    def _annotate(self, number: int, step: ours.Step) -> None:
        """Translate an annotation; skip it if it is open."""
        match step:
            case ours.Parallel(amount=int(amount)) if amount:
                outer = self.state[number].iters[:amount]
                self.state.parallel(number, self.state.fuse(number, outer) if len(outer) > 1 else outer[0])
            case ours.Vectorize(amount=int(amount)) if amount:
                loop = self._find(step.stage, step.loop)
                if loop.iter_kind != IteratorKind.SPATIAL:
                    raise without(f"vectors along the reduction {step.loop} of stage {step.stage}")
                self.state.vectorize(number, loop)
            case ours.Unroll():
                self.state.unroll(number, self._find(step.stage, step.loop))
            case ours.PragmaUnroll(limit=int(limit)) if self.state[number].iters:
                self.state.pragma(number, self.state[number].iters[0], f"auto_unroll_max_step${limit}")
            case ours.Parallel() | ours.Vectorize() | ours.PragmaUnroll():
                return
            case _:
                raise without({"PK": "packing", "PI": "packing", "TE": "instructions", "SA": "aligned rows"}.get(step.code, f"the step {type(step).__name__}"))
