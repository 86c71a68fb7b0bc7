"""The result of steps on a declaration: stages and loops with TVM's numbers and names, and the same program in our steps.

Each step of TVM that changes loops or stages adds our corresponding steps at once. Steps that place stages and annotate loops follow when a program is
requested (`program`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.stages import ComputeAtKind, Iterator, Stage, declared_stage
from ansor.compat.auto_scheduler.steps import ANNOTATIONS, LoggedStep, SplitStep
from ansor.errors import ScheduleError
from ansor.schedule import steps as ours
from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

MAX_ITERATORS = 4096
"""The maximum number of iterators of one stage. Only a malicious log exceeds this."""

MAX_STAGES = 4096

Place = tuple[int, int]
"""A stage and one of its iterators, by number."""


@dataclass(frozen=True, eq=False)
class StateObject:
    """The stages, and the places of those computed inside another. Two states are equal, with equal hashes, if they print the same text, which omits loops of
    one iteration.

    transform_steps: the steps so far, which later steps refer to. sketch: the same program in our steps; refused: the reason why there is none, or ""; notes:
    sentences on what it leaves out. opened: number of a split with open lengths -> the name of their choice.
    """

    stages: tuple[Stage, ...]
    sketch: Sketch
    attached: tuple[tuple[int, Place], ...] = ()
    transform_steps: tuple[LoggedStep, ...] = ()
    opened: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: str = ""

    def stage(self, number: int, verb: str) -> Stage:
        """The computed stage of that number. Raises ScheduleError if there is none."""
        if not 0 <= number < len(self.stages):
            raise ScheduleError(f"asked to {verb} stage {number}; the stages are 0 to {len(self.stages) - 1}")
        if self.stages[number].op_type == "placeholder":
            raise ScheduleError(f"asked to {verb} stage {number} ({self.stages[number].name}), which is a placeholder and has no loops")
        return self.stages[number]

    def place(self, number: int) -> Place | None:
        """Where a stage is computed; None if it is not inside another."""
        return dict(self.attached).get(number)

    def at(self, place: Place) -> tuple[int, ...]:
        """The stages computed at that place."""
        return tuple(number for number, where in self.attached if where == place)

    def with_stage(self, number: int, stage: Stage) -> StateObject:
        """Replace the stage with that number."""
        return replace(self, stages=(*self.stages[:number], stage, *self.stages[number + 1 :]))

    def with_iters(self, number: int, iters: Sequence[Iterator]) -> StateObject:
        """Replace the iterators of a stage."""
        if len(iters) > MAX_ITERATORS:
            raise ScheduleError(f"asked to give stage {self.stages[number].name} {len(iters)} iterators; at most {MAX_ITERATORS} are allowed")
        return self.with_stage(number, replace(self.stages[number], iters=tuple(iters)))

    def moved(self, number: int, places: dict[int, int]) -> StateObject:
        """Move the stages computed at iterator i of a stage to its iterator `places[i]`. Stages at iterators not listed stay there."""
        return replace(self, attached=tuple((who, (at, places.get(k, k)) if at == number else (at, k)) for who, (at, k) in self.attached))

    def detached(self, number: int) -> StateObject:
        """Take a stage out of the stage in which it is computed, if any."""
        return replace(self, attached=tuple(entry for entry in self.attached if entry[0] != number))

    def inserted(self, number: int, stage: Stage) -> StateObject:
        """Insert a stage with that number. Later stages, including the current one of that number, move up by one."""
        if len(self.stages) >= MAX_STAGES:
            raise ScheduleError(f"asked to add stage {stage.name} to {len(self.stages)} others; at most {MAX_STAGES} are allowed")

        def later(k: int) -> int:
            return k + (k >= number)

        return replace(self, stages=(*self.stages[:number], stage, *self.stages[number:]),
                       attached=tuple((later(who), (later(at), k)) for who, (at, k) in self.attached))  # fmt: skip

    @property
    def concrete(self) -> bool:
        """Whether all lengths are set."""
        return not any(isinstance(step, SplitStep) and None in step.lengths for step in self.transform_steps)

    def number_of(self, op: Tensor) -> int | None:
        """The stage of a declared tensor, or of one that a step returned."""
        return next((number for number, stage in enumerate(self.stages) if stage.op is op), None)

    # the same program in our steps -------------------------------------------------------------------------------------------------------------------

    @property
    def computed(self) -> dict[str, int]:
        """The computed stages: name in our steps -> number."""
        return {stage.ours: number for number, stage in enumerate(self.stages) if stage.op_type == "compute"}

    def then(self, *steps: ours.Step, choices: Sequence[Choice] = ()) -> StateObject:
        """Append our steps. If one does not fit, its error becomes the reason why there is no program."""
        if self.refused:
            return self
        longer = self.sketch.then(*steps, choices=choices)
        try:
            assert longer.state
        except ScheduleError as error:
            return self.refusing(str(error))
        return replace(self, sketch=longer)

    def refusing(self, reason: str) -> StateObject:
        """Set the reason why there is no program, unless there already is one."""
        return replace(self, refused=self.refused or reason)

    def check(self) -> None:
        """Raise ScheduleError if there is no program."""
        if self.refused:
            raise ScheduleError(self.refused)

    def in_order(self, number: int) -> StateObject:
        """Reorder our loops like the stage's iterators."""
        stage = self.stages[number]
        same = self.refused or self.sketch.state[stage.ours].loops == stage.loops
        return self if same else self.then(ours.Reorder(stage.ours, stage.loops))

    def as_one_loop(self, number: int, which: int) -> StateObject:
        """Make an iterator a single loop of our schedule, by fusing the loops that only TVM has fused so far."""
        stage = self.stages[number]
        whole = stage.iters[which]
        if self.refused or len(whole.loops) == 1:
            return self
        if not whole.loops:
            return self.refusing(f"asked to cut a loop of stage {stage.ours} that was made by fusing no loops; it has one iteration")
        fused = self.in_order(number).then(ours.Fuse(stage.ours, whole.loops))
        if fused.refused:
            return fused
        loops = (fused.sketch.state[stage.ours].relations[-1].fused,)  # type: ignore[union-attr]  # the relation of a Fuse
        return fused.with_iters(number, [*stage.iters[:which], replace(whole, loops=loops), *stage.iters[which + 1 :]])

    # text -------------------------------------------------------------------------------------------------------------------------------------------

    @cached_property
    def _text(self) -> str:
        return self.to_text()

    @cached_property
    def _identity(self) -> str:
        """The text that equal states share. If a length is open, it includes loops that seem to have one iteration."""
        return self._text if self.concrete else self.to_text(delete_trivial_loop=False)

    def to_text(self, delete_trivial_loop: bool = True) -> str:
        """The loops, indented. Omits loops of one iteration unless `delete_trivial_loop` is False."""
        given = ", ".join(stage.name for stage in self.stages if stage.op_type == "placeholder")
        lines = [f"Placeholder: {given}"]
        for number, stage in enumerate(self.stages):
            if stage.op_type == "compute" and stage.compute_at == ComputeAtKind.ROOT:
                lines += _lines(self, number, "", delete_trivial_loop)
        return "\n".join(lines) + "\n"

    def __eq__(self, other: object) -> bool:
        found = getattr(other, "state_object", other)
        return isinstance(found, StateObject) and self._identity == found._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        return self._text


def initial_state(dag: Declaration) -> StateObject:
    """The state in which every tensor is as declared."""
    return StateObject(tuple(declared_stage(op, dag.renamed[id(op)]) for op in dag.ops), Sketch(dag.dag))


def _lines(structure: StateObject, number: int, indent: str, delete_trivial: bool) -> list[str]:
    stage, lines = structure.stages[number], []
    if stage.attrs.auto_unroll_max_step:
        lines.append(f"{indent}{stage.name} auto_unroll: {stage.attrs.auto_unroll_max_step}")
    if stage.attrs.storage_offset:
        lines.append(f"{indent}{stage.name} storage_offset: {stage.attrs.storage_offset}")
    for k, one in enumerate(stage.iters):
        if not (delete_trivial and one.range is not None and one.range.extent == 1):
            lines.append(f"{indent}{ANNOTATIONS[one.annotation]} {one.name} {one.range or '(None)'}")
            indent += "  "
        for inside in structure.at((number, k)):
            lines += _lines(structure, inside, indent, delete_trivial)
    return [*lines, f"{indent}{stage.name} = ..."]
