"""Steps that split, fuse and reorder loops. Docstrings show the loops before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.schedule.state import At, FuseRelation, Lengths, Origins, SplitRelation, Stage, State
from ansor.schedule.step import Step, lengths_of, register


def _check_root_loops(state: State, stage: Stage, loops: tuple[str, ...], verb: str) -> None:
    for other in state.attached(stage.name):
        assert isinstance(other.placement, At)
        if other.placement.loop in loops:
            raise ScheduleError(
                f"asked to {verb} loop {other.placement.loop} of stage {stage.name}, where stage {other.name} is computed; do this before compute_at"
            )


@register
@dataclass(frozen=True)
class Split(Step):
    """Split a loop into `parts` loops; `lengths` are those of all parts but the outermost.

    before   for i in 512
    after    for i_0 in 16:  for i_1 in 4:  for i_2 in 8          (lengths 4, 8)
    """

    code = "SP"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        return _cut(state, self.stage, self.loop, self.lengths, self.parts, outer=False)

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=lengths_of(self.lengths, numbers))


@register
@dataclass(frozen=True)
class SplitOuter(Step):
    """Split a loop into `parts` loops; `lengths` are those of all parts but the innermost, which becomes as long as needed.

    before   for i in 512
    after    for i_0 in 4:  for i_1 in 8:  for i_2 in 16          (lengths 4, 8)
    """

    code = "SPO"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        return _cut(state, self.stage, self.loop, self.lengths, self.parts, outer=True)

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=lengths_of(self.lengths, numbers))


def _cut(state: State, name: str, loop: str, lengths: Lengths, parts: int, *, outer: bool) -> State:
    stage = state[name]
    stage.check_loop(loop, "split")
    given = () if isinstance(lengths, str) else lengths
    if not isinstance(lengths, str) and (len(given) != parts - 1 or any(not isinstance(n, int) or n < 1 for n in given)):
        raise ScheduleError(f"asked to split loop {loop} of {name} into {parts} parts of lengths {given}; give parts - 1 lengths >= 1")
    names = tuple(f"{loop}_{k}" for k in range(parts))
    _check_root_loops(state, stage, (loop,), "split")
    return state.updated(_split(stage, loop, names, SplitRelation(loop, names, lengths, outer=outer)))


def _split(stage: Stage, loop: str, names: tuple[str, ...], relation: SplitRelation) -> Stage:
    k = stage.loops.index(loop)
    kinds = dict(stage.kinds) | dict.fromkeys(names, stage.kinds[loop])
    origins = Origins(kinds, (*stage.relations, relation), stage.origins.borrowed)
    return replace(stage, loops=(*stage.loops[:k], *names, *stage.loops[k + 1 :]), origins=origins)


@register
@dataclass(frozen=True)
class FollowSplit(Step):
    """Split a loop like another split: with the first `parts - 2` of its lengths, and the product of the rest as the last.

    before   for i in 512                               (followed: lengths 4, 8, 2)
    after    for i_0 in 8:  for i_1 in 4:  for i_2 in 16          (parts = 3)
    """

    code = "FSP"
    loop: str
    lengths: Lengths
    parts: int

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "split")
        if self.parts < 2:
            raise ScheduleError(f"asked to split loop {self.loop} of {self.stage} into {self.parts} parts; it takes at least 2")
        names = tuple(f"{self.loop}_{k}" for k in range(self.parts))
        _check_root_loops(state, stage, (self.loop,), "split")
        return state.updated(_split(stage, self.loop, names, SplitRelation(self.loop, names, self.lengths, follow=self.parts - 1)))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        return replace(self, lengths=lengths_of(self.lengths, numbers))


@register
@dataclass(frozen=True)
class Fuse(Step):
    """Fuse consecutive loops into one.

    before   for i in 4:  for j in 8
    after    for i_j in 32
    """

    code = "FU"
    loops: tuple[str, ...]

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        for loop in self.loops:
            stage.check_loop(loop, "fuse")
        k = stage.loops.index(self.loops[0])
        if len(self.loops) < 2 or stage.loops[k : k + len(self.loops)] != self.loops:
            raise ScheduleError(f"asked to fuse loops {', '.join(self.loops)} of stage {self.stage}, which are not consecutive in {', '.join(stage.loops)}")
        if len({stage.kinds[loop] for loop in self.loops}) != 1:
            raise ScheduleError(f"asked to fuse loops {', '.join(self.loops)} of stage {self.stage}, which mix spatial and reduction loops; fuse one kind")
        _check_root_loops(state, stage, self.loops[:-1], "fuse")
        fused = "_".join(self.loops) + "_f"
        relations = (*stage.relations, FuseRelation(self.loops, fused))
        moved = state.updated(
            replace(
                stage,
                loops=(*stage.loops[:k], fused, *stage.loops[k + len(self.loops) :]),
                origins=Origins(dict(stage.kinds) | {fused: stage.kinds[self.loops[0]]}, relations, stage.origins.borrowed),
            )
        )
        for other in state.attached(self.stage):
            if isinstance(other.placement, At) and other.placement.loop == self.loops[-1]:
                moved = moved.updated(replace(moved[other.name], placement=At(self.stage, fused)))
        return moved


@register
@dataclass(frozen=True)
class Reorder(Step):
    """Reorder the loops of a stage; `loops` lists all of them.

    before   for i:  for j:  for k
    after    for i:  for k:  for j
    """

    code = "RE"
    loops: tuple[str, ...]

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if sorted(self.loops) != sorted(stage.loops):
            raise ScheduleError(f"asked to order stage {self.stage} as {', '.join(self.loops)}, but its loops are {', '.join(stage.loops)}; list each once")
        if state.attached(self.stage):
            raise ScheduleError(f"asked to reorder stage {self.stage}, inside which other stages are computed; reorder before compute_at")
        return state.updated(replace(stage, loops=self.loops))
