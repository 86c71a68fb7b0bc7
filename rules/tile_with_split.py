"""Tile sums that a stage behind them makes others of, and compute both inside the stage that reads those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.rules.tiling import STRUCTURE, UNEVEN, tile
from ansor.schedule.choice import level_choice
from ansor.schedule.questions import needs_tiling
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Root, Stage, State
from ansor.schedule.steps import ComputeAt, FollowSplit, PragmaUnroll, Reorder, Step
from ansor.targets.base import Target
from ansor.te.expr import Axis

WRITTEN_OUT = (0, 4, 16)
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
    """

    structure: str = STRUCTURE
    levels: tuple[int, ...] = (1, 2)
    uneven: int | None = UNEVEN
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        state = sketch.state
        if access.SPLIT_BEHIND not in state[stage].tensor.attrs or not needs_tiling(state, stage):
            return
        split = _only_reader(state, stage)
        last = _only_reader(state, split.name) if split is not None else None
        shared = _shared(split, last) if split is not None and last is not None else []
        if split is None or last is None or not shared:
            return
        tiled = tile(sketch, stage, self.structure, private=True, uneven=self.uneven)
        cut = [(axis.name, choice) for axis, choice in zip(shared, tiled.choices, strict=False) if choice]
        for level in self.levels:
            if cut and level < self.structure.upper().count("S"):
                yield Derived(_placed(tiled.sketch, (stage, split.name, last.name), cut, level))


def _only_reader(state: State, name: str) -> Stage | None:
    """The stage at root that reads this one alone, as declared."""
    readers = state.consumers(name)
    if len(readers) != 1:
        return None
    free = not readers[0].relations and not state.attached(readers[0].name) and isinstance(readers[0].placement, Root)
    return readers[0] if free and not access.has_reduction(readers[0].tensor) else None


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


def _placed(sketch: Sketch, names: tuple[str, str, str], cut: list[tuple[str, str]], level: int) -> Sketch:
    """Sums, and what they are split into, inside the last stage's loops, after `level` of the levels that they share."""
    sums, split, last = names
    whole = [loop for loop in sketch.state[last].loops if loop not in dict(cut)]
    steps: list[Step] = [FollowSplit(last, loop, choice, level + 1) for loop, choice in cut]
    order = [f"{loop}_{part}" for part in range(level) for loop, _ in cut]
    unroll = level_choice(f"{last}.unroll", WRITTEN_OUT)
    steps += [Reorder(last, (*order, *(f"{loop}_{level}" for loop, _ in cut), *whole)), PragmaUnroll(last, unroll.name)]
    steps += [ComputeAt(split, last, order[-1]), ComputeAt(sums, last, order[-1])]
    return sketch.then(*steps, choices=[unroll])
