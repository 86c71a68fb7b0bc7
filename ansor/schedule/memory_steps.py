"""Steps that say which memory holds a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.schedule.state import Inlined, State
from ansor.schedule.step import Step, register


@register
@dataclass(frozen=True)
class SetScope(Step):
    """Keep a stage in another memory of the machine: a scratchpad, an accumulator.

    before   for j: x_local[...] local          ...
    after    for j: x_local[...] scratchpad     ...          (scope `scratchpad`)
    """

    code = "SS"
    scope: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not isinstance(self.scope, str) or not self.scope.isidentifier() or self.scope in ("input", "constant", "output"):
            raise ScheduleError(f"asked to keep stage {self.stage} in {self.scope!r}; give the name of a memory of the target")
        if state.is_output(self.stage):
            raise ScheduleError(f"asked to keep stage {self.stage} in {self.scope}, but it is an output, which the caller gives; cache it, and move the copy")
        if isinstance(stage.placement, Inlined):
            raise ScheduleError(f"asked to keep stage {self.stage} in {self.scope}, which is inlined and kept nowhere; compute it at root or at a loop")
        return state.updated(replace(stage, storage=replace(stage.storage, scope=self.scope)))
