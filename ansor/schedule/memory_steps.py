"""Steps that choose the memory of a stage and the number of its copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.schedule.state import Amount, At, Inlined, State
from ansor.schedule.step import Step, amount_of, register


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
            raise ScheduleError(f"asked to keep stage {self.stage} in {self.scope}, but it is an output of the caller; cache it, and move the copy")
        if isinstance(stage.placement, Inlined):
            raise ScheduleError(f"asked to keep stage {self.stage} in {self.scope}, which is inlined and not stored; compute it at root or at a loop")
        return state.updated(replace(stage, storage=replace(stage.storage, scope=self.scope)))


@register
@dataclass(frozen=True)
class Buffered(Step):
    """Keep several copies of a stage that is computed inside a loop and use them in turn: the next is filled while the last is still read.

    before   for j: x_local[8] scratchpad           after    for j: 2 x x_local[8] scratchpad          (copies 2)

    This only helps a machine that fills its memories in parallel with the arithmetic.
    """

    code = "BU"
    copies: Amount

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not isinstance(self.copies, str) and (not isinstance(self.copies, int) or self.copies < 1):
            raise ScheduleError(f"asked to keep {self.copies!r} copies of stage {self.stage}; give a number of at least 1")
        if not isinstance(stage.placement, At):
            raise ScheduleError(f"asked to keep copies of stage {self.stage}, which is not computed inside a loop: there is no next one; compute it at a loop")
        return state.updated(replace(stage, storage=replace(stage.storage, copies=self.copies)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, copies=amount_of(self.copies, numbers))
