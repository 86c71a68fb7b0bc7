"""Multi-level tiling, shared by the rules that tile."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.schedule.choice import Choice, tile_choice, uneven_tile_choice
from ansor.schedule.questions import ALWAYS_UNROLL_INNER, NO_SPLIT_AT_INNER, attribute_names, axes_of_packed_only
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder, Split, Step, Unroll
from ansor.te.expr import Axis

STRUCTURE = "SSRSRS"
"""Ansor's levels for processors, outermost first: spatial (threads), spatial, reduction, spatial, reduction, spatial (registers and vectors)."""

UNEVEN = 17
"""A shorter axis is a tile of its own: its tail would cost more than it gives."""


@dataclass(frozen=True)
class Tiled:
    """A sketch with one stage tiled, and the name of each spatial axis' choice, '' for an axis left whole."""

    sketch: Sketch
    choices: tuple[str, ...]


def tile(sketch: Sketch, stage: str, structure: str = STRUCTURE, *, private: bool = False, uneven: int | None = UNEVEN) -> Tiled:
    """Cut every axis into as many parts as its letter occurs in `structure`, and order the parts as the letters stand.

    before   for i, j, k
    after    for i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3            (SSRSRS)

    Axes that the attribute `auto_scheduler_no_split_at_inner` names stay whole and start the innermost level of their kind. Where a packed constant
    has output axes of its own (output channels), those come last in every level, so that the vectors run along them; but only for a `private` tile,
    which is stored in the order of its loops, while a whole tensor is stored as declared. The innermost lengths of axes
    of `uneven` elements or more need not divide; with None those of no axis.
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
        count = letters.count(_letter(axis))
        if axis.name in whole or count == 1:
            parts[axis.name] = [axis.name]
            continue
        cut = tile_choice if uneven is None or axis.extent < uneven else uneven_tile_choice
        choice = cut(f"{stage}.{axis.name}", axis.extent, count - 1)
        choices.append(choice)
        steps.append(Split(stage, axis.name, choice.name, count))
        parts[axis.name] = [f"{axis.name}_{k}" for k in range(count)]
    ordered = sorted(axes, key=lambda axis: axis.name in last)  # stable: only the axes named move
    order = tuple(loop for k in range(len(letters)) for loop in _level(letters, k, ordered, parts))
    steps.append(Reorder(stage, order))
    steps += [Unroll(stage, parts[axis.name][-1]) for axis in axes if axis.name in attribute_names(state[stage].tensor, ALWAYS_UNROLL_INNER)]
    named = {choice.name.removeprefix(f"{stage}."): choice.name for choice in choices}
    return Tiled(sketch.then(*steps, choices=choices), tuple(named.get(axis.name, "") for axis in axes if axis.kind == "spatial"))


def _checked(structure: str) -> str:
    letters = structure.upper()
    if set(letters) != {"S", "R"}:
        raise ScheduleError(f"asked for the tiling structure {structure!r}; write S (spatial) and R (reduction), at least one of each, such as {STRUCTURE}")
    return letters


def _letter(axis: Axis) -> str:
    return "S" if axis.kind == "spatial" else "R"


def _level(letters: str, k: int, axes: list[Axis], parts: dict[str, list[str]]) -> list[str]:
    """The loops of the k-th letter."""
    own = [axis for axis in axes if _letter(axis) == letters[k]]
    place, count = letters[:k].count(letters[k]), letters.count(letters[k])
    cut = [parts[axis.name][place] for axis in own if len(parts[axis.name]) == count]
    uncut = [axis.name for axis in own if len(parts[axis.name]) != count and place == count - 1]
    return uncut + cut
