"""The parts of a state: stages and their iterators (loops), named as in TVM's auto-scheduler. All are immutable.

Source: TVM 0.9, `auto_scheduler.loop_state`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import ClassVar

from ansor.compat.auto_scheduler.steps import IteratorAnnotation
from ansor.errors import ScheduleError
from ansor.te.expr import Axis
from ansor.te.tensor import Tensor


class IteratorKind(IntEnum):
    """What a loop iterates over: the output's elements, a reduction, both (fused), or nothing."""

    SPATIAL = 0
    REDUCTION = 1
    MIXED = 2
    SPECIAL = 3


class ComputeAtKind(IntEnum):
    """Where a stage is computed: in its own nest, inlined into its readers, or in a loop of another stage."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True)
class Range:
    """`extent` values, starting at `min`."""

    min: int
    extent: int

    def __str__(self) -> str:
        return f"({self.min},{self.extent})"


@dataclass(frozen=True)
class Iterator:
    """A loop of a stage. `range` is None if it depends on where the stage is computed, or on an open length.

    label: the loop's name in Python text, `k.outer.inner`; loops: the corresponding loops of our schedule, outermost first.
    """

    name: str
    range: Range | None
    iter_kind: IteratorKind
    annotation: IteratorAnnotation = IteratorAnnotation.NONE
    label: str = field(default="", compare=False, repr=False)
    loops: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class StageAttributes:
    """Hints for a stage: the maximum number of steps to unroll, and the row alignment in memory."""

    auto_unroll_max_step: int = 0
    storage_offset: int = 0


Axes = tuple[tuple[str, Range], ...]
"""Labels and ranges of the loops of a new stage."""

Named = tuple[str, tuple[str, ...]]
"""The name of a stage of our schedule, and its loops."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A placeholder, or a computed tensor. `op`: its tensor; a stage made by a step has a new one. `spatial`, `reduced`: its initial loops;
    `ours`: its name in our steps."""

    op: Tensor
    op_type: str
    iters: tuple[Iterator, ...] = ()
    compute_at: ComputeAtKind = ComputeAtKind.ROOT
    attrs: StageAttributes = StageAttributes()
    name: str = ""
    spatial: Axes = ()
    reduced: Axes = ()
    ours: str = ""

    COMPUTE_AT_TRANS_TABLE: ClassVar[Mapping[str, int]] = {"root": ComputeAtKind.ROOT, "inlined": ComputeAtKind.INLINED, "iter": ComputeAtKind.ITER}

    def check_iter(self, number: int, verb: str) -> Iterator:
        """The iterator of that number. Raises ScheduleError if there is none."""
        if not 0 <= number < len(self.iters):
            raise ScheduleError(f"asked to {verb} iterator {number} of stage {self.name}, which has {len(self.iters)}: {names_of(self.iters)}")
        return self.iters[number]

    @property
    def loops(self) -> tuple[str, ...]:
        """The loops of our schedule, in the order of the iterators."""
        return tuple(loop for one in self.iters for loop in one.loops)

    def is_whole(self) -> bool:
        """Whether its loops are the initial ones, in any order."""
        return sorted(one.label for one in self.iters) == sorted(label for label, _ in (*self.spatial, *self.reduced))

    def unbounded(self) -> Stage:
        """The stage without extents, which depend on where it is computed."""
        return replace(self, iters=tuple(replace(one, range=None) for one in self.iters))


def names_of(iters: tuple[Iterator, ...]) -> str:
    """The names of iterators, for a message."""
    return ", ".join(one.name for one in iters) or "none"


def clean(label: str) -> str:
    """A label as a short Python name: `k.outer.inner` -> `k_o_i`."""
    return re.sub(r"\W", "_", re.sub(r"\b(outer|inner)\b", lambda found: found[0][0], label))


def computed_stage(op: Tensor, name: str, spatial: Axes, reduced: Axes = (), same: Named = ("", ())) -> Stage:
    """A computed stage with one loop per axis. same: the corresponding stage of our schedule."""
    axes = [(axis, kind) for axes, kind in ((spatial, IteratorKind.SPATIAL), (reduced, IteratorKind.REDUCTION)) for axis in axes]
    loops: list[tuple[str, ...]] = [(loop,) for loop in same[1]] or [()] * len(axes)
    iters = tuple(Iterator(clean(label), values, kind, label=label, loops=one) for ((label, values), kind), one in zip(axes, loops, strict=True))
    return Stage(op, "compute", iters, name=name, spatial=spatial, reduced=reduced, ours=same[0])


def declared_stage(op: Tensor, same: Tensor) -> Stage:
    """The stage of a declared tensor. same: the same tensor under the name that our steps use."""
    if op.compute is None or same.compute is None:
        return Stage(op, "placeholder", name=op.name, ours=same.name)
    loops = tuple(axis.name for axis in (*same.compute.axes, *same.compute.reduce_axes))
    return computed_stage(op, op.name, axes_of(op.compute.axes), axes_of(op.compute.reduce_axes), (same.name, loops))


def axes_of(axes: tuple[Axis, ...]) -> Axes:
    """The names and ranges of axes."""
    return tuple((axis.name, Range(axis.start, axis.extent)) for axis in axes)
