"""Steps that choose where a stage is computed: inside a loop of another stage, wherever it is read, or in its own nest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.schedule.state import At, Inlined, Root, Stage, State
from ansor.schedule.step import Step, register


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
        if stage.storage.kept and target.kinds[self.loop] == "reduce":
            raise ScheduleError(
                f"asked to compute the partial results {self.stage} at loop {self.loop} of {self.target}, which combines them: each iteration would compute "
                "all of them again; choose a spatial loop"
            )
        readers = state.consumers(self.stage)
        if not readers or not all(_inside(state, reader.name, self.target, self.loop) for reader in readers):
            names = ", ".join(reader.name for reader in readers) or "no stage"
            raise ScheduleError(
                f"asked to compute {self.stage} at loop {self.loop} of {self.target}, but it is read by {names}; choose a loop around all readers"
            )
        return placed(state, replace(stage, placement=At(self.target, self.loop)))


def placed(state: State, stage: Stage) -> State:
    """The state with a stage moved. Raises ScheduleError if it has to stay at root, or if a stage computed inside the old place would lose a reader."""
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
        if stage.packed.names:
            names = ", ".join(stage.packed.names)
            raise ScheduleError(f"asked to inline stage {self.stage}, whose loops order the packed copy of {names}; leave it at root or do not pack")
        return placed(state, replace(stage, placement=Inlined()))


@register
@dataclass(frozen=True)
class ComputeRoot(Step):
    """Compute a stage in its own nest: undoes compute_at and compute_inline."""

    code = "CR"

    def apply(self, state: State) -> State:
        return placed(state, replace(state[self.stage], placement=Root()))
