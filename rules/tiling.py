"""Multi-level tiling, shared by the rules that tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.ir.intrinsics import Intrinsic, Match
from ansor.schedule.choice import Choice, tile_choice, uneven_tile_choice
from ansor.schedule.questions import ALWAYS_UNROLL_INNER, NO_SPLIT_AT_INNER, attribute_names, axes_of_packed_only
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage
from ansor.schedule.steps import Reorder, Split, Step, Tensorize, Unroll
from ansor.targets.base import Target
from ansor.te.expr import Axis
from ansor.te.fold import walk

STRUCTURE = "SSRSRS"
"""Ansor's levels for processors, outermost first: spatial (threads), spatial, reduction, spatial, reduction, spatial (registers and vectors)."""

ONE_NUMBER = 4
"""Bytes that a core without vectors computes at a time."""

UNEVEN = 17
"""A shorter axis is not split unevenly: its tail would cost more than it gains."""


@dataclass(frozen=True)
class Tiled:
    """A sketch with one stage tiled, and the choice name of each spatial axis, '' for an axis left whole."""

    sketch: Sketch
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Inner:
    """What one instruction computes inside the tiles: a vector along one axis, a group of another, or as many groups as fit a block."""

    intrinsic: Intrinsic
    match: Match

    @property
    def groups(self) -> int:
        """Groups of a block: the most that divide the axis; 1 for an instruction on vectors."""
        if self.intrinsic.block is None:
            return 1
        count = self.match.group.extent // self.intrinsic.group
        return next(groups for groups in range(min(count, self.intrinsic.block.groups), 0, -1) if count % groups == 0)

    def splits(self, stage: str) -> list[Step]:
        """Split off what one instruction sums; for a block, its groups from the elements of each."""
        axis, size = self.match.group.name, self.intrinsic.group
        whole = Split(stage, axis, (self.groups * size,), 2)
        return [whole] if self.intrinsic.block is None else [whole, Split(stage, f"{axis}_1", (size,), 2)]


def tile(sketch: Sketch, stage: str, structure: str = STRUCTURE, *, private: bool = False, uneven: int | None = UNEVEN, inner: Inner | None = None) -> Tiled:
    """Split every axis into one part for each occurrence of its letter in `structure`, and order the parts like the letters.

    before   for i, j, k
    after    for i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3            (SSRSRS)

    Axes listed in the attribute `auto_scheduler_no_split_at_inner` stay whole and start the innermost level of their kind. Output axes that only a
    packed constant has (output channels) come last in every level, so that vectors run along them; but only for a `private` tile, which is stored in
    the order of its loops, while a whole tensor is stored as declared. For axes of at least `uneven` elements, innermost lengths need not divide; with
    None, all lengths divide. With `inner`, its group is split off first and becomes the innermost loop, and the vectors run along its lanes:
    for i_0, j_0, i_1, j_1, k_0_0, i_2, j_2, k_0_1, i_3, j_3, k_1. If the instruction multiplies blocks, k_1 is all that a block sums, in groups:
    for i_0, j_0, i_1, j_1, k_0_0, i_2, j_2, k_0_1, i_3, k_1_0, j_3, k_1_1.
    """
    state = sketch.state
    letters = _checked(structure)
    whole = attribute_names(state[stage].tensor, NO_SPLIT_AT_INNER)
    last = {axis.name for axis in axes_of_packed_only(state, stage)} if private else set()
    axes = state[stage].axes
    steps: list[Step] = []
    choices: list[Choice] = []
    parts: dict[str, list[str]] = {}
    for axis in axes:
        count, label, extent, even = letters.count(_letter(axis)), axis.name, axis.extent, uneven is None or axis.extent < uneven
        if inner is not None and axis is inner.match.group:
            label, extent, even = f"{axis.name}_0", axis.extent // (inner.groups * inner.intrinsic.group), True  # a group is never partial
            steps += inner.splits(stage)
        if axis.name in whole or count == 1:
            parts[axis.name] = [label]
            continue
        choice = (tile_choice if even else uneven_tile_choice)(f"{stage}.{axis.name}", extent, count - 1)
        choices.append(choice)
        steps.append(Split(stage, label, choice.name, count))
        parts[axis.name] = [f"{label}_{k}" for k in range(count)]
    lanes = inner.match.lanes if inner is not None else None
    ordered = sorted(axes, key=lambda axis: (axis is lanes, axis.name in last))  # stable: only these axes move
    order = tuple(loop for k in range(len(letters)) for loop in _level(letters, k, ordered, parts))
    steps += _ordered(stage, order, parts, inner)
    steps += [Unroll(stage, parts[axis.name][-1]) for axis in axes if axis.name in attribute_names(state[stage].tensor, ALWAYS_UNROLL_INNER)]
    named = {choice.name.removeprefix(f"{stage}."): choice.name for choice in choices}
    return Tiled(sketch.then(*steps, choices=choices), tuple(named.get(axis.name, "") for axis in axes if axis.kind == "spatial"))


def one_at_a_time(target: Target) -> bool:
    """True for a core without vectors or instructions that compute several numbers."""
    return target.vector_bytes <= ONE_NUMBER and not target.intrinsics


def constants_outside(stage: Stage, loops: Sequence[str]) -> list[str]:
    """The loops of a stage, with those first that move constants, such as the bias of a channel: each constant is then read once for all other loops."""
    used = {id(node) for read in access.reads(stage.tensor) if read.tensor.constant for index in read.indices for node in walk(index)}
    moving = {axis.name for axis in stage.axes if id(axis) in used}
    several = any(axis.extent > 1 for axis in stage.axes if axis.name not in moving)
    return sorted(loops, key=lambda loop: loop not in moving) if several else list(loops)  # stable


def _ordered(stage: str, order: tuple[str, ...], parts: dict[str, list[str]], inner: Inner | None) -> list[Step]:
    if inner is None:
        return [Reorder(stage, order)]
    lanes, group = parts[inner.match.lanes.name][-1], f"{inner.match.group.name}_1"
    if inner.intrinsic.block is None:
        return [Reorder(stage, (*order, group)), Tensorize(stage, lanes, group, inner.intrinsic.name)]
    others = tuple(loop for loop in order if loop != lanes)
    return [Reorder(stage, (*others, f"{group}_0", lanes, f"{group}_1")), Tensorize(stage, lanes, f"{group}_1", inner.intrinsic.name)]


def _checked(structure: str) -> str:
    letters = structure.upper()
    if set(letters) != {"S", "R"}:
        raise ScheduleError(f"asked for the tiling structure {structure!r}; write S (spatial) and R (reduction), at least one of each, such as {STRUCTURE}")
    return letters


def _letter(axis: Axis) -> str:
    return "S" if axis.kind == "spatial" else "R"


def _level(letters: str, k: int, axes: list[Axis], parts: dict[str, list[str]]) -> list[str]:
    """The loops of the k-th letter in the structure."""
    own = [axis for axis in axes if _letter(axis) == letters[k]]
    place, count = letters[:k].count(letters[k]), letters.count(letters[k])
    cut = [parts[axis.name][place] for axis in own if len(parts[axis.name]) == count]
    uncut = [parts[axis.name][0] for axis in own if len(parts[axis.name]) != count and place == count - 1]
    return uncut + cut
