"""Tile sums that following stages combine into others, and compute all of these inside the last stage, along with the stages that prepare the sums' inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, constants_outside, one_at_a_time, tile
from ansor.schedule.choice import level_choice
from ansor.schedule.questions import attribute_names, is_untouched, needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Root, Stage, State
from ansor.schedule.steps import ComputeAt, FollowSplit, PragmaUnroll, Reorder, Step, Unroll
from ansor.targets.base import Target
from ansor.te.expr import Axis

UNROLLED = (0, 4, 16)
"""Limits for unrolling the last stage's loop, which has few instructions per iteration."""


@register("tile_with_split")
@dataclass(frozen=True)
class TileWithSplit:
    """Split the loops of sums (`access.SPLIT_BEHIND`), and the loops that the last stage shares with them, alike. Compute a tile of the sums, and the stages
    that combine them, before the tile of the last stage.

    before   for i, w, k:  s[i, w] += a[i, k] * b[k, w]
             for i, g, l:  t[i, g, l] = f(s[i, 2 g], s[i, 2 g + 1], l)
             for i, j:     d[i, j] = max(t[i, j / 3, j % 3], 0)
    after    for i_0:                                                            (level 1)
                 for i_1, w_1, k_0, i_2, w_2, k_1, i_3, w_3:  s[...] += ...
                 for i_1, g, l:  t[...] = f(s[...], s[...], l)
                 for i_1, j:  d[...] = max(t[...], 0)

    Without vectors, the loops that move constants, such as the bias of a channel, are outermost in the last stage's tile: each constant is read once.

    Stages that multiply by small constant matrices (`access.WRITTEN_OUT`) may follow or precede the sums. Those before them go into the same loops, outside the
    loops that they do not depend on. Of two such stages, one computes what the other needs for one element, in registers.
    """

    structure: str = STRUCTURE
    levels: tuple[int, ...] = (1, 2)
    uneven: int | None = UNEVEN
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if access.SPLIT_BEHIND not in state[stage].tensor.attrs or not needs_tiling(state, stage):
            return
        behind, last = _behind(state, stage)
        shared = _shared(behind[-1], last) if behind and last is not None else []
        if last is None or not shared:
            return
        tiled = tile(sketch, stage, self.structure, private=True, uneven=self.uneven)
        cut = [(axis.name, choice) for axis, choice in zip(shared, tiled.choices, strict=False) if choice]
        turned = one_at_a_time(target)
        around = SplitStages(stage, tuple(_ahead(state, stage)), tuple(one.name for one in behind), last.name)
        for level in self.levels:
            if cut and level < self.structure.upper().count("S"):
                yield Derived(_placed(tiled.sketch, around, cut, level, turned))


@dataclass(frozen=True)
class SplitStages:
    """The sums, the stages that prepare their inputs (nearest first), the stages that combine them (nearest first), and the last stage."""

    sums: str
    ahead: tuple[str, ...]
    behind: tuple[str, ...]
    last: str


def _behind(state: State, name: str) -> tuple[list[Stage], Stage | None]:
    """The chain of kept stages after the sums, each the only reader of the one before, and the reader of the last; None when there is no suitable reader."""
    found: list[Stage] = []
    reader = _only_reader(state, name)
    while reader is not None and access.KEPT in reader.tensor.attrs and not state.is_output(reader.name):
        found.append(reader)
        reader = _only_reader(state, reader.name)
    return found, reader


def _only_reader(state: State, name: str) -> Stage | None:
    """The only reader of a stage, if it is at root, as declared and no reduction."""
    readers = state.consumers(name)
    if len(readers) != 1:
        return None
    free = not readers[0].relations and not state.attached(readers[0].name) and isinstance(readers[0].placement, Root)
    return readers[0] if free and not access.has_reduction(readers[0].tensor) else None


def _ahead(state: State, name: str) -> list[str]:
    """The unrolled stages that only this stage reads, and those that only they read."""
    found: list[str] = []
    for tensor in access.producers(state[name].tensor):
        if access.WRITTEN_OUT in tensor.attrs and is_untouched(state[tensor.name]) and len(state.consumers(tensor.name)) == 1:
            found += [tensor.name, *_ahead(state, tensor.name)]
    return found


def _shared(split: Stage, last: Stage) -> list[Axis]:
    """The axes at which the last stage reads the leading dimensions of the split stage, in order, each in full."""
    found: list[Axis] = []
    for read in access.reads(last.tensor):
        if read.tensor.name != split.name:
            continue
        assert last.tensor.compute is not None
        own = {id(axis) for axis in last.tensor.compute.axes}
        leading = [index for index, extent in zip(read.indices, read.tensor.shape, strict=True)
                   if isinstance(index, Axis) and id(index) in own and index.extent == extent]  # fmt: skip
        if found and list(map(id, leading)) != list(map(id, found)):
            return []
        found = leading
        if any(index is not axis for index, axis in zip(read.indices, leading, strict=False)):
            return []
    return found


def _placed(sketch: Sketch, around: SplitStages, cut: list[tuple[str, str]], level: int, turned: bool) -> Sketch:
    """The sums and the stages around them, placed in the last stage's loops after `level` shared levels; `turned`: with constants outside."""
    last = around.last
    whole = [loop for loop in sketch.state[last].loops if loop not in dict(cut)]
    steps: list[Step] = [FollowSplit(last, loop, choice, level + 1) for loop, choice in cut]
    order = [f"{loop}_{part}" for part in range(level) for loop, _ in cut]
    parts = {loop: f"{loop}_{level}" for loop, _ in cut}
    inner = [*parts, *whole]
    inner = [parts.get(loop, loop) for loop in (constants_outside(sketch.state[last], inner) if turned else inner)]
    unroll = level_choice(f"{last}.unroll", UNROLLED)
    steps += [Reorder(last, (*order, *inner)), PragmaUnroll(last, unroll.name)]
    steps += _chain(sketch.state, around.behind[::-1], (last, order[-1]))
    steps.append(ComputeAt(around.sums, last, order[-1]))
    if around.ahead:
        steps += _chain(sketch.state, around.ahead, (last, order[_moving(sketch.state, around, cut) - 1]))
    return sketch.then(*steps, choices=[unroll])


def _moving(state: State, around: SplitStages, cut: list[tuple[str, str]]) -> int:
    """The number of split loops up to the last one that the prepared inputs depend on; all of them if there is none."""
    sums, last = state[around.sums].tensor, state[around.last]
    assert sums.compute is not None and last.tensor.compute is not None
    moved = {id(index) for read in access.reads(sums) if read.tensor.name == around.ahead[0] for index in read.indices}
    loops = [loop for loop, _ in cut]
    shared = [axis.name for axis in _shared(state[around.behind[-1]], last)]
    places = [loops.index(name) + 1 for name, axis in zip(shared, sums.compute.axes, strict=False) if name in loops and id(axis) in moved]
    return max(places, default=len(loops))


def _chain(state: State, names: Sequence[str], place: tuple[str, str]) -> list[Step]:
    """Steps that compute stages at a place, nearest first. After an unrolled stage, the next goes inside its last loop that is not unrolled."""
    steps: list[Step] = []
    for name in names:
        stage = state[name]
        unrolled = attribute_names(stage.tensor, access.WRITTEN_OUT)
        loops = [loop for loop in stage.loops if loop not in unrolled]
        if unrolled:
            steps += [Reorder(name, (*loops, *unrolled)), *(Unroll(name, loop) for loop in unrolled)]
        steps.append(ComputeAt(name, *place))
        if unrolled:
            place = (name, loops[-1])
    return steps
