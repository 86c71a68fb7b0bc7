"""The structure of a scheduled program: stages, their loops, and where each is computed.

A `State` holds no numbers: extents follow from it and a row of choices (see `ansor.schedule.lower`). States are immutable; steps return new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.ir.intrinsics import Intrinsic
from ansor.te.expr import Axis, Expr
from ansor.te.fold import fold, with_operands
from ansor.te.tensor import Compute, Read, Tensor

Amount = int | str
"""A number of a step: given, or the name of the choice that sets it."""

Lengths = tuple[int, ...] | str
"""Lengths of a split, outermost first: given, or the name of a choice. The length of one part, the outermost or the innermost, follows from the others."""


@dataclass(frozen=True)
class SplitRelation:
    """`parent` became `parts`. `lengths` are those of parts[1:], or of parts[:-1] if `outer`; `follow` = number of lengths when they follow another split."""

    parent: str
    parts: tuple[str, ...]
    lengths: Lengths
    follow: int = 0
    outer: bool = False


@dataclass(frozen=True)
class FuseRelation:
    """`parents` became one loop."""

    parents: tuple[str, ...]
    fused: str


Relation = SplitRelation | FuseRelation


@dataclass(frozen=True)
class Root:
    """Computed in its own nest."""


@dataclass(frozen=True)
class Inlined:
    """Computed again wherever it is read."""


@dataclass(frozen=True)
class At:
    """Computed inside loop `loop` of stage `stage`, only the region needed there."""

    stage: str
    loop: str


Placement = Root | Inlined | At


@dataclass(frozen=True)
class Annotations:
    """How loops run. `parallel`: how many outermost loops run as one parallel loop; `vectorize`: loop -> flag; `unroll`: fully unrolled loops;
    `intrinsics`: loop -> instruction that runs it."""

    parallel: Amount = 0
    vectorize: Mapping[str, Amount] = field(default_factory=dict)
    unroll: tuple[str, ...] = ()
    unroll_limit: Amount = 0
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)


@dataclass(frozen=True)
class Origins:
    """Where the loops of a stage come from.

    kinds: loop -> `spatial` or `reduce`, also for loops that were split or fused; relations: these splits and fusions, in order.
    borrowed: axes whose extent is that of a loop of another stage: axis name -> (stage, loop).
    """

    kinds: Mapping[str, str]
    relations: tuple[Relation, ...] = ()
    borrowed: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Packed:
    """What a stage reads in its loop order. ahead: constant inputs, packed ahead of time; inside: other tensors, copied by the kernel."""

    ahead: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both."""
        return (*self.ahead, *self.inside)


@dataclass(frozen=True)
class Storage:
    """How the result of a stage is stored.

    kept: reduction loops whose partial results are stored (rfactor), each a further dimension of the buffer.
    align: (factor, offset) of the innermost stored dimension, for storage_align. scope: the memory that holds it, '' for the default.
    copies: the number of copies, used in turn.
    """

    kept: tuple[str, ...] = ()
    align: tuple[int, int] | None = None
    scope: str = ""
    copies: Amount = 1


@dataclass(frozen=True)
class Stage:
    """One computed tensor. loops: from outermost to innermost; role: why the stage exists, '' for one that was declared."""

    tensor: Tensor
    loops: tuple[str, ...]
    origins: Origins
    placement: Placement = Root()
    annotations: Annotations = Annotations()
    packed: Packed = Packed()
    storage: Storage = Storage()
    role: str = ""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Loop -> `spatial` or `reduce`."""
        return self.origins.kinds

    @property
    def relations(self) -> tuple[Relation, ...]:
        """How its loops were split and fused, in order."""
        return self.origins.relations

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Spatial axes, then reduce axes."""
        assert self.tensor.compute is not None
        return self.tensor.compute.axes + self.tensor.compute.reduce_axes

    def check_loop(self, loop: str, step: str) -> None:
        """Raises ScheduleError unless `loop` is a loop of this stage."""
        if loop not in self.loops:
            raise ScheduleError(f"asked to {step} loop {loop!r} of stage {self.name}, whose loops are {', '.join(self.loops) or 'none'}; name one of these")


def initial_stage(tensor: Tensor) -> Stage:
    """The stage as declared: one loop per axis."""
    assert tensor.compute is not None
    axes = tensor.compute.axes + tensor.compute.reduce_axes
    return Stage(tensor, tuple(axis.name for axis in axes), Origins({axis.name: axis.kind for axis in axes}))


@dataclass(frozen=True, eq=False)
class State:
    """All computed stages in topological order."""

    dag: Dag
    stages: tuple[Stage, ...]

    def __getitem__(self, name: str) -> Stage:
        found = self._by_name.get(name)
        if found is not None:
            return found
        raise ScheduleError(f"asked for stage {name!r}, which does not exist; the stages are {', '.join(stage.name for stage in self.stages)}")

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Stage]:
        return {stage.name: stage for stage in reversed(self.stages)}

    @cached_property
    def _readers(self) -> dict[str, list[Stage]]:
        """For each tensor, the stages whose own body reads it, in order."""
        found: dict[str, list[Stage]] = {}
        for stage in self.stages:
            for name in dict.fromkeys(read.tensor.name for read in access.reads(stage.tensor)):
                found.setdefault(name, []).append(stage)
        return found

    @cached_property
    def _consumers(self) -> dict[str, list[Stage]]:
        """The cache of `consumers`."""
        return {}

    def position(self, name: str) -> int:
        """Index of the stage called `name`."""
        return [stage.name for stage in self.stages].index(self[name].name)

    def updated(self, stage: Stage) -> State:
        """The state with the stage of that name replaced."""
        return State(self.dag, tuple(stage if old.name == stage.name else old for old in self.stages))

    def inserted(self, before: str, new: Stage) -> State:
        """The state with `new` inserted before stage `before`."""
        k = self.position(before)
        return State(self.dag, (*self.stages[:k], new, *self.stages[k:]))

    def is_output(self, name: str) -> bool:
        """True for tensors that the caller receives."""
        return any(tensor.name == name for tensor in self.dag.outputs)

    def readers(self, name: str) -> list[Stage]:
        """Stages whose own body reads `name`, inlined ones included."""
        return list(self._readers.get(name, ()))

    def consumers(self, name: str) -> list[Stage]:
        """Stages that read `name` directly or through inlined stages."""
        if name not in self._consumers:
            found: dict[str, Stage] = {}
            for stage in self.readers(name):
                through = self.consumers(stage.name) if isinstance(stage.placement, Inlined) else [stage]
                found.update((consumer.name, consumer) for consumer in through)
            self._consumers[name] = [stage for stage in self.stages if stage.name in found]
        return list(self._consumers[name])

    def packed_by(self, name: str) -> list[Stage]:
        """Stages that read a packed copy of stage `name`, made before them."""
        return [stage for stage in self.stages if name in stage.packed.inside]

    def attached(self, name: str) -> list[Stage]:
        """Stages computed inside stage `name`."""
        return [stage for stage in self.stages if isinstance(stage.placement, At) and stage.placement.stage == name]


def initial_state(dag: Dag) -> State:
    """The program as declared: every stage in its own nest."""
    return State(dag, tuple(initial_stage(tensor) for tensor in dag.stages if not tensor.is_placeholder))


def redirected(tensor: Tensor, old: str, new: Tensor) -> Tensor:
    """`tensor` with every read of `old` turned into a read of `new`, at the same indices."""
    assert tensor.compute is not None

    def swap(node: Expr, operands: tuple[Expr, ...]) -> Expr:
        return Read(new, operands, node.dtype) if isinstance(node, Read) and node.tensor.name == old else with_operands(node, operands)

    compute = tensor.compute
    return replace(tensor, compute=Compute(compute.axes, compute.reduce_axes, fold(compute.body, swap)))
