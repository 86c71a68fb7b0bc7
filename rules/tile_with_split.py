"""Tile sums that stages behind them make others of, and compute all of them inside the last one, with what is made for the sums ahead of them."""

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
"""Iterations of the last loop, of few instructions each, that are written out."""


@register("tile_with_split")
@dataclass(frozen=True)
class TileWithSplit:
    """Cut the loops of sums (`access.SPLIT_BEHIND`) and those that the last stage has in common with them alike; compute a tile of the sums, and what is
    made of them, before the tile of the last stage.

    before   for i, w, k:  s[i, w] += a[i, k] * b[k, w]
             for i, g, l:  t[i, g, l] = f(s[i, 2 g], s[i, 2 g + 1], l)
             for i, j:     d[i, j] = max(t[i, j / 3, j % 3], 0)
    after    for i_0:                                                            (level 1)
                 for i_1, w_1, k_0, i_2, w_2, k_1, i_3, w_3:  s[...] += ...
                 for i_1, g, l:  t[...] = f(s[...], s[...], l)
                 for i_1, j:  d[...] = max(t[...], 0)

    Without vectors, the tile of the last stage has the loops outside that move constants, such as the bias of a channel: each is read once for the others.

    Stages that multiply with small constant matrices (`access.WRITTEN_OUT`) may be behind the sums, and ahead of them: these come into the same loops, outside
    those that they do not move with. Of two such stages, one makes what the other needs for one of its elements, in registers.
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
        around = Around(stage, tuple(_ahead(state, stage)), tuple(one.name for one in behind), last.name)
        for level in self.levels:
            if cut and level < self.structure.upper().count("S"):
                yield Derived(_placed(tiled.sketch, around, cut, level, turned))


@dataclass(frozen=True)
class Around:
    """Sums, the stages that make something for them, the nearest one first, those that make something of them, the nearest one first, and the last one."""

    sums: str
    ahead: tuple[str, ...]
    behind: tuple[str, ...]
    last: str


def _behind(state: State, name: str) -> tuple[list[Stage], Stage | None]:
    """Stages that are kept, each the only one that reads the one before; and what reads the last of them, None where that is not to be had."""
    found: list[Stage] = []
    reader = _only_reader(state, name)
    while reader is not None and access.KEPT in reader.tensor.attrs and not state.is_output(reader.name):
        found.append(reader)
        reader = _only_reader(state, reader.name)
    return found, reader


def _only_reader(state: State, name: str) -> Stage | None:
    """The stage at root that reads this one alone, as declared."""
    readers = state.consumers(name)
    if len(readers) != 1:
        return None
    free = not readers[0].relations and not state.attached(readers[0].name) and isinstance(readers[0].placement, Root)
    return readers[0] if free and not access.has_reduction(readers[0].tensor) else None


def _ahead(state: State, name: str) -> list[str]:
    """What is written out for a stage alone, and what is for that."""
    found: list[str] = []
    for tensor in access.producers(state[name].tensor):
        if access.WRITTEN_OUT in tensor.attrs and is_untouched(state[tensor.name]) and len(state.consumers(tensor.name)) == 1:
            found += [tensor.name, *_ahead(state, tensor.name)]
    return found


def _shared(split: Stage, last: Stage) -> list[Axis]:
    """The axes of the last stage at which it reads the first dimensions of what is split, in their order, each whole."""
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


def _placed(sketch: Sketch, around: Around, cut: list[tuple[str, str]], level: int, turned: bool) -> Sketch:
    """Sums, and what is around them, inside the last stage's loops, after `level` of the levels that they share; `turned`: with constants outside."""
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


def _moving(state: State, around: Around, cut: list[tuple[str, str]]) -> int:
    """How many of the loops that are cut there are up to the last one that what is made for the sums moves with; one at least."""
    sums, last = state[around.sums].tensor, state[around.last]
    assert sums.compute is not None and last.tensor.compute is not None
    moved = {id(index) for read in access.reads(sums) if read.tensor.name == around.ahead[0] for index in read.indices}
    loops = [loop for loop, _ in cut]
    shared = [axis.name for axis in _shared(state[around.behind[-1]], last)]
    places = [loops.index(name) + 1 for name, axis in zip(shared, sums.compute.axes, strict=False) if name in loops and id(axis) in moved]
    return max(places, default=len(loops))


def _chain(state: State, names: Sequence[str], place: tuple[str, str]) -> list[Step]:
    """Stages computed at a place, the nearest one first: each that is written out at the first one's last loop that is not."""
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
