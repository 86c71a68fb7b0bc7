"""Schedules written by hand, with TVM's calls. Start here.

    s = create_schedule(C.op)
    yo, xo, yi, xi = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 32)
    s[C].vectorize(xi)

A schedule collects steps; its result is a `Sketch`. Steps need a certain order, but calls come in any order. So a schedule keeps three kinds of calls
apart, and joins them when its steps are requested:

    1. changes of loops and stages (split, fuse, reorder, cache_read, cache_write, rfactor), applied at once
    2. where stages are computed (compute_at, compute_inline, compute_root): the last call per stage, consumers first
    3. how loops run (vectorize, parallel, unroll, pragma, tensorize, storage_align)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import SupportsIndex, overload

from ansor.errors import DeclarationError, ScheduleError
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.manual.loop import AnyLoop
from ansor.manual.running import StageAnnotations
from ansor.manual.scheduled_stage import Placing, ScheduledStage, StageOperation, as_list, check_scope
from ansor.schedule.choice import Choice
from ansor.schedule.extents import axis_extent, loop_extents
from ansor.schedule.sized import guards_of
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import FuseRelation, SplitRelation, State, initial_state
from ansor.schedule.steps import CacheRead, CacheWrite, ComputeAt, ComputeInline, Rfactor, Step
from ansor.support.names import known_names
from ansor.te.expr import Axis
from ansor.te.tensor import Operation, Tensor

Scheduled = Tensor | Operation | StageOperation | str
"""Identifies a stage: a declared tensor or one returned by `cache_read`, `cache_write` or `rfactor`, its operation, or its name."""


@known_names()
def create_schedule(ops: Scheduled | Sequence[Scheduled]) -> Schedule:
    """An empty schedule of these outputs, as operations or tensors, and everything they read."""
    tensors = []
    for one in as_list(ops):
        tensor = one.tensor if isinstance(one, (Operation, StageOperation)) else one
        if not isinstance(tensor, Tensor) or tensor.is_placeholder:
            raise DeclarationError(f"asked for a schedule of {one!r}; give tensors that te.compute made, or their .op")
        tensors.append(tensor)
    return Schedule(Dag([*_placeholders(tensors), *tensors], check_reads=False))


def _placeholders(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The input tensors, each once, in order of first read."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    waiting = list(reversed(tensors))
    while waiting:
        tensor = waiting.pop()
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if tensor.is_placeholder:
            found[id(tensor)] = tensor
        waiting += reversed(access.producers(tensor))
    return list(found.values())


class Schedule:
    """The schedule of a program's stages. Every call changes it; `sketch` returns its current state."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.guards = guards_of(dag.declared)  # before schedules compare sizes
        self.choices: list[Choice] = []
        self.state: State = initial_state(dag)
        self._changes: list[Step] = []
        self._places: dict[str, Placing] = {}
        self._running: dict[str, StageAnnotations] = {}
        self._factored: dict[str, tuple[tuple[AnyLoop, ...], tuple[AnyLoop, ...]]] = {}
        self._names = {id(tensor): stage.name for tensor, stage in zip(dag.declared + dag.stages, dag.stages * 2, strict=True)}
        self._made: list[Tensor] = []
        self._axes = _axes_as_declared(dag)
        self._numbers = _Numbers()

    def __getitem__(self, what: Scheduled) -> ScheduledStage:
        name = self._name(what)
        if name not in self.state:
            raise ScheduleError(f"asked to schedule {name}, which is not a stage; the stages are {self._listed()}: inputs need no schedule")
        return ScheduledStage(self, name)

    @property
    def stages(self) -> tuple[ScheduledStage, ...]:
        """All stages, each after those it reads."""
        return tuple(ScheduledStage(self, stage.name) for stage in self.state.stages)

    @property
    def outputs(self) -> tuple[StageOperation, ...]:
        """The outputs."""
        return tuple(self[tensor].op for tensor in self.dag.outputs)

    def normalize(self) -> Schedule:
        """Return the schedule unchanged: it has only one form."""
        return self

    # stages ---------------------------------------------------------------------------------------------------------------------------------------------

    @overload
    def cache_write(self, tensor: Scheduled, scope: str) -> Tensor: ...

    @overload
    def cache_write(self, tensor: list[Tensor], scope: str) -> list[Tensor]: ...

    def cache_write(self, tensor: Scheduled | list[Tensor], scope: str) -> Tensor | list[Tensor]:
        """Add a stage that computes the values of `tensor`, which then only copies them. Call this before any other change of `tensor`.

        Returns the new stage's tensor; for a list of tensors, a list. Afterwards, `s[tensor].op.axis` are the axes of the copy. The axes of the declaration
        belong to the new stage; passed to `s[tensor]`, they stand for the corresponding axes of the copy.
        """
        if isinstance(tensor, list):
            return [self.cache_write(one, scope) for one in tensor]
        name = self[tensor].name
        check_scope(scope, f"a cache of {name}")
        self.running(name).refuse_all(name, "cache-write")
        return self._making(CacheWrite(name))

    def cache_read(self, tensor: Scheduled, scope: str, readers: Scheduled | Sequence[Scheduled]) -> Tensor:
        """Add a stage that copies `tensor`, an input or a stage, for these readers. Returns its tensor."""
        name = self._name(tensor)
        check_scope(scope, f"a copy of {name}")
        names = tuple(self[reader].name for reader in as_list(readers))  # type: ignore[index]  # checked there
        return self._making(CacheRead(name, names, scope or "copy"))

    def rfactor(self, tensor: Scheduled, axis: AnyLoop, factor_axis: SupportsIndex = 0) -> Tensor:
        """Add a stage that computes partial results of `tensor`, one per iteration of the reduction loop `axis`, which `tensor` then combines.

        Returns its tensor. Its axes are those of `tensor`, with `axis` inserted at position `factor_axis`; it reduces over the remaining reduction loops.
        """
        stage = self[tensor]
        loop, place = stage.name_of(axis, "rfactor"), operator.index(factor_axis)
        self.running(stage.name).refuse_all(stage.name, "rfactor")
        before = self.state[stage.name]
        spatial: list[AnyLoop] = list(before.tensor.compute.axes if before.tensor.compute else ())
        place = place + len(spatial) + 1 if place < 0 else place
        rest = [name for name in before.loops if before.kinds[name] == "reduce" and name != loop]
        made = self._making(Rfactor(stage.name, loop, place))
        partial = ScheduledStage(self, made.name)
        own = {one.name: one for one in before.axes}
        spatial.insert(place, partial.loop(loop))
        self._factored[made.name] = (tuple(spatial), tuple(own[name] if name in own else partial.loop(name) for name in rest))
        return made

    def _making(self, step: Step) -> Tensor:
        known = {stage.name for stage in self.state.stages}
        self.change(step)
        (made,) = [stage.tensor for stage in self.state.stages if stage.name not in known]
        self._names[id(made)] = made.name
        self._made.append(made)  # so that no other tensor gets its id
        return made

    # the result -----------------------------------------------------------------------------------------------------------------------------------------

    def sketch(self, args: Sequence[Tensor] | None = None) -> Sketch:
        """The steps, in a valid order, for a program that takes `args`: by default the inputs in order of reading, then the outputs.

        Raises ScheduleError for a step that does not fit the others, DeclarationError for a read outside its tensor.
        """
        self.dag.check_reads()
        dag = self.dag if args is None else self.dag.taking([self._argument(tensor) for tensor in args])
        found = Sketch(dag, tuple(self._steps(dag)), tuple(self.choices))
        _ = found.state  # apply every step now, so that mistakes show here
        return found

    def _argument(self, tensor: object) -> Tensor:
        """The Dag's tensor for an argument, even if `cache_write` or `rfactor` has replaced the tensor of its stage since."""
        if not isinstance(tensor, Tensor):
            raise DeclarationError(f"asked for the argument {tensor!r}; arguments are tensors")
        name = self._names.get(id(tensor))
        return next((stage for stage in self.dag.stages if stage.name == name), tensor)

    def _steps(self, dag: Dag) -> Iterator[Step]:
        state = initial_state(dag)
        for step in self._changes:
            state = step.apply(state)
        yield from self._changes
        for stage in state.stages:
            order = self.running(stage.name).order(stage)
            if order is not None:
                state = order.apply(state)
                yield order
        yield from self._placed(state)
        for stage in state.stages:
            yield from self.running(stage.name).steps(stage, lambda loop, name=stage.name: self.extent(name, loop))  # type: ignore[misc]  # a default

    def _placed(self, state: State) -> Iterator[Step]:
        """Consumers first, so that a stage is already placed when its producers are placed inside its loops."""
        for stage in reversed(state.stages):
            step = self._places.get(stage.name)
            if isinstance(step, ComputeAt):
                yield ComputeAt(step.stage, step.target, _now(state, step))
            elif isinstance(step, ComputeInline):
                yield step

    def __str__(self) -> str:
        return str(self.sketch())

    # called by stages -----------------------------------------------------------------------------------------------------------------------------------

    def change(self, step: Step) -> None:
        """Apply a step that changes loops or stages. Raises ScheduleError if it does not fit."""
        self.state = step.apply(self.state)
        self._changes.append(step)

    def place(self, step: Placing) -> None:
        """Record where a stage is computed."""
        self._places[step.stage] = step

    def running(self, stage: str) -> StageAnnotations:
        """The mutable record of how a stage's loops run."""
        return self._running.setdefault(stage, StageAnnotations())

    def axes(self, name: str) -> tuple[tuple[AnyLoop, ...], tuple[AnyLoop, ...]]:
        """The axes and reduction axes of a stage."""
        if name in self._factored:
            return self._factored[name]
        stage = self.state[name]
        compute = stage.tensor.compute
        assert compute is not None
        combined = [ScheduledStage(self, name).loop(axis.name) if axis.name in stage.origins.borrowed else axis for axis in compute.reduce_axes]
        return compute.axes, tuple(combined)

    def same_axes(self, axis: object) -> Sequence[Axis]:
        """The axes of this program for an axis of the declaration: itself, and those renamed to avoid clashes."""
        return [axis, *self._axes.get(id(axis), ())] if isinstance(axis, Axis) else []

    def axis_of_copy(self, name: str, same: Sequence[Axis]) -> Axis | None:
        """The current axis of a stage at the position of one of `same` in its declaration. The two differ after `cache_write` and `rfactor`."""
        declared = next((stage.compute for stage in self.dag.stages if stage.name == name), None)
        now = self.state[name].tensor.compute
        pairs = zip(declared.axes, now.axes, strict=True) if declared is not None and now is not None else ()
        return next((own for axis, own in pairs if any(axis is one for one in same)), None)

    def extent(self, stage: str, loop: str) -> int:
        """Iterations of a loop if its whole stage is computed."""
        found = self.state[stage]
        axes = {axis.name: axis_extent(self.state, found, axis, self._numbers) for axis in found.axes}
        return int(loop_extents(found, axes, self._numbers)[loop])

    def leave_open(self, choice: Choice, lengths: Callable[[], tuple[int, ...]]) -> None:
        """Add an open choice that steps may name. `lengths` is called if a number is needed before the choice is made."""
        if choice.name not in self._numbers:
            self.choices.append(choice)
            self._numbers.given[choice.name] = lengths

    def _name(self, what: object) -> str:
        if isinstance(what, str):
            return what
        tensor = what.tensor if isinstance(what, (Operation, StageOperation)) else what
        found = self._names.get(id(tensor))
        if found is None and isinstance(tensor, Tensor):  # a stage's current tensor, from s[...].op
            found = next((stage.name for stage in self.state.stages if stage.tensor is tensor), None)
        if found is None:
            raise ScheduleError(f"asked for the stage of {what!r}, which this schedule does not have; its stages are {self._listed()}")
        return found

    def _listed(self) -> str:
        return ", ".join(stage.name for stage in self.state.stages)


class _Numbers(Mapping[str, tuple[int, ...]]):
    """The numbers of open choices, computed on demand."""

    def __init__(self) -> None:
        self.given: dict[str, Callable[[], tuple[int, ...]]] = {}

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return self.given[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __contains__(self, name: object) -> bool:
        return name in self.given


def _axes_as_declared(dag: Dag) -> dict[int, list[Axis]]:
    """Axes whose names differ between program and declaration: id of the declared one -> those in the program."""
    found: dict[int, list[Axis]] = {}
    for tensor, stage in zip(dag.declared, dag.stages, strict=True):
        if tensor.compute is None or stage.compute is None:
            continue
        for axis, own in zip(tensor.compute.axes + tensor.compute.reduce_axes, stage.compute.axes + stage.compute.reduce_axes, strict=True):
            if axis is not own:
                found.setdefault(id(axis), []).append(own)
    return found


def _now(state: State, step: ComputeAt) -> str:
    """What a loop of the target has become since it was named: its innermost part, or the loop it was fused into as the last one."""
    stage, loop = state[step.target], step.loop
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            loop = relation.parts[-1]
        elif isinstance(relation, FuseRelation) and loop in relation.parents:
            if loop != relation.parents[-1]:
                raise ScheduleError(
                    f"asked to compute stage {step.stage} at loop {loop} of stage {step.target}, which was fused with loops inside it into {relation.fused}; "
                    "name that loop"
                )
            loop = relation.fused
    return loop
