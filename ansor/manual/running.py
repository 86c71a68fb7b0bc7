"""Records the annotations of a stage's loops, and turns them into steps once the loops are final."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ansor.errors import ScheduleError
from ansor.schedule.state import Stage
from ansor.schedule.steps import Parallel, PragmaUnroll, Reorder, Step, StorageAlign, Tensorize, Unroll, Vectorize

DONE = {"parallel": "run in parallel", "vectorize": "run as vectors", "unroll": "unrolled", "tensorize": "computed by an instruction"}
"""Method -> description of a loop that it was called for."""


@dataclass
class StageAnnotations:
    """The annotations of one stage. runs: loop -> the method called for it; intrinsic: the instruction of the tensorized loop; limit: the most
    statements of an unrolled reduction; align: (factor, offset) of its rows."""

    runs: dict[str, str] = field(default_factory=dict)
    intrinsic: str = ""
    limit: int | None = None
    align: tuple[int, int] | None = None

    def note(self, stage: str, loop: str, method: str) -> None:
        """Record how a loop runs. Raises ScheduleError if that was already set."""
        if loop in self.runs:
            raise ScheduleError(f"asked to {method} loop {loop} of stage {stage}, which is {DONE[self.runs[loop]]} already; annotate each loop once")
        self.runs[loop] = method

    def refuse(self, stage: str, loops: tuple[str, ...], verb: str) -> None:
        """Raise ScheduleError if a loop to be changed is already annotated."""
        for loop in loops:
            if loop in self.runs:
                raise ScheduleError(f"asked to {verb} loop {loop} of stage {stage}, which is {DONE[self.runs[loop]]}; {verb} first, then annotate the result")

    def refuse_all(self, stage: str, verb: str) -> None:
        """Raise ScheduleError if a stage whose loops are to be replaced is already annotated."""
        if self != StageAnnotations():
            raise ScheduleError(f"asked to {verb} stage {stage}, which is already annotated; {verb} first, then annotate")

    def order(self, stage: Stage) -> Step | None:
        """The step that moves the vectorized loop innermost, if needed: its iterations run at once, inside all other loops."""
        vectors = self._vectors(stage)
        if vectors is None or stage.loops[-1] == vectors:
            return None
        return Reorder(stage.name, (*(loop for loop in stage.loops if loop != vectors), vectors))

    def steps(self, stage: Stage, extent: Callable[[str], int]) -> Iterator[Step]:
        """The annotations of a stage."""
        if self.align is not None:
            yield StorageAlign(stage.name, *self.align)
        vectors = self._vectors(stage)
        if vectors is not None:
            yield Vectorize(stage.name, vectors)
        for loop, method in self.runs.items():
            if method == "unroll":
                yield Unroll(stage.name, loop)
            if method == "tensorize":
                yield Tensorize(stage.name, loop, stage.loops[-1], self.intrinsic)
        if self.limit is not None:
            yield PragmaUnroll(stage.name, self.limit)
        amount = self._parallel(stage, extent)
        if amount:
            yield Parallel(stage.name, amount)

    def _vectors(self, stage: Stage) -> str | None:
        found = [loop for loop, method in self.runs.items() if method == "vectorize"]
        if len(found) > 1:
            raise ScheduleError(f"asked to vectorize loops {', '.join(found)} of stage {stage.name}; fuse them into one, or vectorize one")
        return found[0] if found else None

    def _parallel(self, stage: Stage, extent: Callable[[str], int]) -> int:
        """How many outermost loops run as one parallel loop; loops of one iteration may be in between."""
        places = [place for place, loop in enumerate(stage.loops) if self.runs.get(loop) == "parallel"]
        if not places:
            return 0
        for loop in stage.loops[: places[-1]]:
            if self.runs.get(loop) != "parallel" and extent(loop) > 1:
                raise ScheduleError(
                    f"asked to run loop {stage.loops[places[-1]]} of stage {stage.name} in parallel, which is inside loop {loop}; only "
                    f"outermost loops can run in parallel: reorder it to the front, or fuse the two (its loops are {', '.join(stage.loops)})"
                )
        return places[-1] + 1
