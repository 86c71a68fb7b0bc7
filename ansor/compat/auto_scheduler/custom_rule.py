"""User-defined rules on states: `PreloadCustomSketchRule`. Source: TVM 0.9, `auto_scheduler.search_policy`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.export import state_of
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.structure import StateObject
from ansor.errors import ScheduleError
from ansor.rules.base import Derived
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target

Meets = Callable[[object, State, int], int]
Applies = Callable[[object, State, int], Sequence[Sequence["State | StateObject | int"]]]


class PreloadCustomSketchRule:
    """A rule that is tried before the built-in ones.

    meet_condition_func(policy, state, stage_id): returns PASS, APPLY (later rules are tried as well) or APPLY_AND_SKIP_REST.
    apply_func(policy, state, stage_id): returns a list of [state, number of the stage to continue with, or -1 to end].
    """

    PASS: ClassVar[int] = 0
    APPLY: ClassVar[int] = 1
    APPLY_AND_SKIP_REST: ClassVar[int] = 2

    def __init__(self, meet_condition_func: Meets, apply_func: Applies, rule_name: str = "CustomSketchRule") -> None:
        self.meet_condition_func, self.apply_func, self.rule_name = meet_condition_func, apply_func, rule_name


@dataclass(frozen=True)
class CustomRule:
    """A user's rule as a rule of our search."""

    given: PreloadCustomSketchRule
    dag: ComputeDAG
    policy: object
    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        """The sketches that the rule derives for a stage; none if TVM's steps cannot express the sketch so far."""
        try:
            state = state_of(self.dag, sketch)
        except ScheduleError:
            return
        number = state.state_object.computed[stage]
        answer = int(self.given.meet_condition_func(self.policy, state, number))
        if answer == PreloadCustomSketchRule.PASS:
            return
        for found, following in self.given.apply_func(self.policy, state.copy(), number):
            if not isinstance(found, State | StateObject) or not isinstance(following, int):
                raise ScheduleError(f"the rule {self.given.rule_name} returned {found!r:.80}, {following!r:.80}; return [state, number of the next stage]")
            made = self.dag.replay(found)
            pending = tuple(stage.ours for stage in made.stages[: following + 1] if stage.op_type == "compute")
            derived = Sketch(sketch.dag, made.sketch.steps, made.sketch.choices)
            yield Derived(derived, pending=pending, exclusive=answer == PreloadCustomSketchRule.APPLY_AND_SKIP_REST)
