"""One stage of a schedule written by hand: `s[C]`. Every method has the name and meaning it has in TVM."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, SupportsIndex

from ansor.errors import ScheduleError
from ansor.ir.intrinsics import Intrinsic
from ansor.manual.loop import AnyLoop, Loop
from ansor.manual.running import StageAnnotations
from ansor.schedule.state import FuseRelation, Lengths, Relation, SplitRelation, Stage, State
from ansor.schedule.steps import ComputeAt, ComputeInline, ComputeRoot, Fuse, Reorder, Split, SplitOuter, Step
from ansor.targets.base import find_intrinsic
from ansor.te.expr import Axis
from ansor.te.tensor import Operation, Tensor

SCOPES = ("", "global", "local")
Placing = ComputeAt | ComputeInline | ComputeRoot


class OwnSchedule(Protocol):
    """What a stage needs from its schedule."""

    state: State

    def change(self, step: Step) -> None:
        """Apply a step that changes loops or stages. Raises ScheduleError if it does not fit."""
        ...

    def place(self, step: Placing) -> None:
        """Record where a stage is computed."""
        ...

    def running(self, stage: str) -> StageAnnotations:
        """The mutable record of how a stage's loops run."""
        ...

    def axes(self, name: str) -> tuple[tuple[AnyLoop, ...], tuple[AnyLoop, ...]]:
        """The axes and reduction axes of a stage."""
        ...

    def same_axes(self, axis: object) -> Sequence[Axis]:
        """The axes of this program for an axis of the declaration."""
        ...

    def axis_of_copy(self, name: str, same: Sequence[Axis]) -> Axis | None:
        """The current axis of a stage at the position of one of `same` in its declaration."""
        ...

    def extent(self, stage: str, loop: str) -> int:
        """Iterations of a loop if its whole stage is computed."""
        ...



@dataclass(frozen=True, eq=False)
class StageOperation:
    """A stage's operation, as scheduled so far. `axis`, `reduce_axis`: its axes, which change after `cache_write` and `rfactor`."""

    tensor: Tensor
    axis: tuple[AnyLoop, ...]
    reduce_axis: tuple[AnyLoop, ...]

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the stage reads, each once, in order of first read; after `cache_read`, the copies."""
        return Operation(self.tensor).input_tensors


class ScheduledStage:
    """A stage of a schedule, obtained by `s[C]`."""

    def __init__(self, schedule: OwnSchedule, name: str) -> None:
        self._schedule = schedule
        self.name = name

    @property
    def op(self) -> StageOperation:
        """Its operation and axes."""
        axes, reduce_axes = self._schedule.axes(self.name)
        return StageOperation(self._stage.tensor, axes, reduce_axes)

    @property
    def leaf_iter_vars(self) -> tuple[AnyLoop, ...]:
        """Its loops from the outermost to the innermost."""
        axes = {axis.name: axis for axis in self._stage.axes if axis.name not in self._stage.origins.borrowed}
        return tuple(axes[loop] if loop in axes else self.loop(loop) for loop in self._stage.loops)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Its splits and fusions, in order."""
        return self._stage.relations

    # loops ----------------------------------------------------------------------------------------------------------------------------------------------

    def split(self, parent: AnyLoop, factor: SupportsIndex | None = None, nparts: SupportsIndex | None = None) -> tuple[Loop, Loop]:
        """Split a loop in two: `factor` iterations inside, or `nparts` outside; the other loop gets the length needed.

        The length need not divide the loop: iterations beyond its end are skipped. Returns the outer and the inner loop.
        """
        asked = f"asked to split loop {self.name_of(parent, 'split')} of stage {self.name} by"
        if (factor is None) == (nparts is None):
            raise ScheduleError(f"{asked} factor={factor}, nparts={nparts}; give one of them")
        given = factor if factor is not None else nparts
        try:
            length = operator.index(given)  # type: ignore[arg-type]  # None was refused
        except TypeError:
            raise ScheduleError(f"{asked} {given!r}; give a whole number") from None
        outer, inner = self._cut(parent, (length,), 2, outer=factor is None)
        return outer, inner

    def split_into(self, parent: AnyLoop, lengths: Lengths, parts: int | None = None) -> tuple[Loop, ...]:
        """Split a loop by its inner `lengths`, outermost first, into one loop more than there are lengths.

        `lengths` may name an open choice of the schedule, with one number fewer than `parts`.
        """
        count = parts if parts is not None else len(lengths) + 1
        return self._cut(parent, lengths if isinstance(lengths, str) else tuple(operator.index(length) for length in lengths), count, outer=False)

    def tile(self, x_parent: AnyLoop, y_parent: AnyLoop, x_factor: SupportsIndex, y_factor: SupportsIndex) -> tuple[Loop, Loop, Loop, Loop]:
        """Split two loops and put the inner ones inside both outer ones. Returns the outer x and y, and the inner x and y."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *loops: AnyLoop) -> Loop:
        """Fuse adjacent loops, outermost first; a single loop is unchanged."""
        names = tuple(self.name_of(loop, "fuse") for loop in loops)
        if len(names) == 1:
            return self.loop(names[0])
        if not names:
            raise ScheduleError(f"asked to fuse no loops of stage {self.name}; name at least one of {', '.join(self._stage.loops) or 'none'}")
        self._schedule.running(self.name).refuse(self.name, names, "fuse")
        self._schedule.change(Fuse(self.name, names))
        return self.loop(self._stage.relations[-1].fused)  # type: ignore[union-attr]  # the relation that was just made

    def reorder(self, *loops: AnyLoop) -> None:
        """Reorder these loops among the positions they occupy; the other loops stay in place."""
        names = [self.name_of(loop, "reorder") for loop in loops]
        if len(set(names)) != len(names):
            raise ScheduleError(f"asked to reorder stage {self.name} as {', '.join(names)}; name each loop once")
        order = iter(names)
        changed = tuple(next(order) if loop in names else loop for loop in self._stage.loops)
        if changed != self._stage.loops:
            self._schedule.change(Reorder(self.name, changed))

    # how loops run ------------------------------------------------------------------------------------------------------------------------------------

    def vectorize(self, var: AnyLoop) -> None:
        """Vectorize a loop: all its iterations run at once, so it becomes the innermost loop.

        A reduction uses vectors of partial results.
        """
        self._run(var, "vectorize")

    def unroll(self, var: AnyLoop) -> None:
        """Unroll a loop."""
        self._run(var, "unroll")

    def parallel(self, var: AnyLoop) -> None:
        """Distribute a loop over the target's threads. It must be the outermost loop, or directly inside other parallel loops."""
        self._run(var, "parallel")

    def tensorize(self, var: AnyLoop, tensor_intrin: str | Intrinsic) -> None:
        """Compute the two innermost loops, a loop and the reduction inside it, with an instruction of a target's `intrinsics`.

        The loop runs along the lanes of a vector; the reduction has as many iterations as one instruction sums.
        """
        self._run(var, "tensorize")
        if isinstance(tensor_intrin, str) and find_intrinsic(tensor_intrin) is None:
            raise ScheduleError(f"asked to tensorize stage {self.name} with {tensor_intrin!r}, which no known target has; see `intrinsics` of a target")
        self._schedule.running(self.name).intrinsic = str(tensor_intrin)

    def pragma(self, var: AnyLoop, pragma_type: str, pragma_value: SupportsIndex | None = None) -> None:
        """`auto_unroll_max_step`: reductions of the stage are unrolled while their body has at most that many statements.

        `unroll_explicit` is accepted and ignored: it makes no difference here whether we or the C compiler unroll a body.
        """
        name = self.name_of(var, "pragma")
        if pragma_type == "unroll_explicit":
            return
        if pragma_type != "auto_unroll_max_step" or pragma_value is None or operator.index(pragma_value) < 0:
            raise ScheduleError(
                f"asked for the pragma {pragma_type!r} with {pragma_value!r} at loop {name} of stage {self.name}; give auto_unroll_max_step with a number "
                "of statements, 0 for none"
            )
        self._schedule.running(self.name).limit = operator.index(pragma_value)

    def storage_align(self, axis: AnyLoop, factor: SupportsIndex, offset: SupportsIndex) -> None:
        """Pad the stage's rows, so that neighbours along `axis`, its last but one, are `offset` modulo `factor` elements apart."""
        spatial = self._stage.tensor.compute.axes if self._stage.tensor.compute else ()
        if len(spatial) < 2 or self._axis(axis) is not spatial[-2]:
            asked = getattr(axis, "name", axis)
            raise ScheduleError(f"asked to align axis {asked} of stage {self.name}; only rows are padded: give its last axis but one"
                                + (f", {spatial[-2].name}" if len(spatial) > 1 else ", which it does not have"))
        self._schedule.running(self.name).align = (operator.index(factor), operator.index(offset))

    # where it is computed -----------------------------------------------------------------------------------------------------------------------------

    def compute_at(self, parent: ScheduledStage, scope: AnyLoop) -> None:
        """Compute the stage inside a loop of a stage that reads it, and there only the part needed. The last such call wins."""
        if not isinstance(parent, ScheduledStage):
            raise ScheduleError(f"asked to compute stage {self.name} at a loop of {parent!r}; give a stage of this schedule, s[...]")
        self._schedule.place(ComputeAt(self.name, parent.name, parent.name_of(scope, f"compute {self.name} at")))

    def compute_inline(self) -> None:
        """Recompute the stage wherever it is read."""
        self._schedule.place(ComputeInline(self.name))

    def compute_root(self) -> None:
        """Compute the stage in its own nest, the default."""
        self._schedule.place(ComputeRoot(self.name))

    def set_scope(self, scope: str) -> None:
        """Check the scope and ignore it: a stage is on the stack if computed at a loop, else in the workspace."""
        check_scope(scope, f"stage {self.name}")

    def bind(self, ivar: AnyLoop, thread_ivar: object) -> NoReturn:
        """Raises ScheduleError: processors have no grid of threads."""
        raise ScheduleError(
            f"asked to bind loop {self.name_of(ivar, 'bind')} of stage {self.name} to {thread_ivar}, a thread of a GPU; use parallel for outer loops "
            "and vectorize for the innermost"
        )

    def __repr__(self) -> str:
        return f"{self.name}: {', '.join(self._stage.loops)}"

    # names ----------------------------------------------------------------------------------------------------------------------------------------------

    @property
    def _stage(self) -> Stage:
        return self._schedule.state[self.name]

    def loop(self, name: str) -> Loop:
        """The handle of the loop of that name."""
        return Loop(self.name, name, lambda: self._schedule.extent(self.name, name))

    def _cut(self, parent: AnyLoop, lengths: Lengths, parts: int, *, outer: bool) -> tuple[Loop, ...]:
        name = self.name_of(parent, "split")
        self._schedule.running(self.name).refuse(self.name, (name,), "split")
        self._schedule.change((SplitOuter if outer else Split)(self.name, name, lengths, parts))
        return tuple(self.loop(part) for part in self._stage.relations[-1].parts)  # type: ignore[union-attr]  # the relation that was just made

    def _run(self, loop: AnyLoop, method: str) -> None:
        self._schedule.running(self.name).note(self.name, self.name_of(loop, method), method)

    def _axis(self, axis: object) -> Axis | None:
        """This stage's axis for an axis of its declaration, even if `cache_write` or `rfactor` has moved the declared one to another stage."""
        same = self._schedule.same_axes(axis)
        own = next((own for own in self._stage.axes if any(own is one for one in same)), None)
        return self._schedule.axis_of_copy(self.name, same) if own is None else own

    def name_of(self, loop: object, verb: str) -> str:
        """The name of an existing loop of this stage."""
        if isinstance(loop, Loop) and loop.stage == self.name:
            name = loop.name
        elif isinstance(loop, Axis) and (axis := self._axis(loop)) is not None:
            name = axis.name
        else:
            of = f" of stage {loop.stage}" if isinstance(loop, Loop) else ""
            asked = loop.name if isinstance(loop, (Loop, Axis)) else repr(loop)
            raise ScheduleError(
                f"asked to {verb} loop {asked}{of}, which is not a loop of stage {self.name}; its loops are {', '.join(self._stage.loops) or 'none'}: "
                f"take them from s[{self.name}].op.axis, .op.reduce_axis or .leaf_iter_vars"
            )
        if name not in self._stage.loops:
            raise ScheduleError(f"asked to {verb} loop {name} of stage {self.name}, which was {_became(self._stage, name)}; name a loop that still exists")
        return name


def _became(stage: Stage, loop: str) -> str:
    """What happened to a loop that no longer exists."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            return f"split into {', '.join(relation.parts)}"
        if isinstance(relation, FuseRelation) and loop in relation.parents:
            return f"fused into {relation.fused}"
    return f"replaced by {', '.join(stage.loops)}"


def check_scope(scope: str, what: str) -> None:
    """Raise ScheduleError for a memory that processors do not have."""
    if scope not in SCOPES:
        raise ScheduleError(f"asked for {what} in memory {scope!r}, which only other devices have; give 'global' or 'local'")


def as_list(value: object) -> Sequence[object]:
    """A list or tuple as a list; any other value as a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
