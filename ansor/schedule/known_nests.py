"""A cache of lowered nests: the sketches of a declaration share most of their nests, and each shared nest is lowered once.

Two nests are the same if everything they are made of is the same: their stages, what is inlined into them, how the tensors that they read are stored, and the
columns of their numbers. They are then one object, so that analyses of its statements hold for all sketches that share it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import RLock

from ansor.ir import access
from ansor.ir.columns import Int
from ansor.ir.dag import c_identifier
from ansor.ir.loops import Buffer, Node
from ansor.ir.tape import Column
from ansor.schedule.extents import Numbers
from ansor.schedule.regions import Frame
from ansor.schedule.state import At, Inlined, SplitRelation, Stage, State

Key = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class KnownNest:
    """frames: the frames of its stages, root first; node: the nest; state: where it was first seen, kept alive because its key holds ids of its parts."""

    frames: Mapping[str, Frame]
    node: Node
    state: State


@dataclass(frozen=True, eq=False)
class KnownNests:
    """Known nests and buffers of one declaration, in one set of memories, with numbers of programs, or columns of one recorder. most: beyond that many nests,
    all are forgotten when the next program begins."""

    nests: dict[Key, KnownNest] = field(default_factory=dict)
    buffers: dict[Key, Buffer] = field(default_factory=dict)
    most: float = math.inf
    lock: RLock = field(default_factory=RLock)

    def begin(self) -> None:
        """Before a program. Nests and buffers are forgotten together, as nests refer to buffers."""
        if len(self.nests) > self.most:
            self.nests.clear()
            self.buffers.clear()

    def keys(self, state: State, numbers: Numbers) -> dict[str, Key]:
        """The key of each root stage's nest. Nests with packed operands have no key: they create further buffers and nests. Nor have those of a program in
        which names clash: what its loops are called depends on the other nests."""
        found: dict[str, Key] = {}
        if _names_clash(state):
            return found
        for root in state.stages:
            if not isinstance(root.placement, At | Inlined):
                members = list(_members(state, root))
                if not any(stage.packed.names for stage in members):
                    found[root.name] = _key(state, members, numbers)
        return found

    def of(self, keys: Mapping[str, Key]) -> dict[str, KnownNest]:
        """The nests that are known, by root stage."""
        return {root: self.nests[key] for root, key in keys.items() if key in self.nests}

    def keep(self, keys: Mapping[str, Key], state: State, frames: Mapping[str, Frame], nodes: tuple[Node, ...]) -> None:
        """Remember the nests of a program. nodes: its body."""
        by_stage = {node.stage: node for node in nodes}
        for root, key in keys.items():
            if key not in self.nests:
                self.nests[key] = KnownNest({stage.name: frames[stage.name] for stage in _members(state, state[root])}, by_stage[root], state)

    def same(self, buffer: Buffer) -> Buffer:
        """The first known buffer that equals this one."""
        key = (buffer.name, _numbers(buffer.shape), buffer.dtype, buffer.scope, _numbers((buffer.copies,)))
        return self.buffers.setdefault(key, buffer)


def _names_clash(state: State) -> bool:
    """Whether two loops, or a loop and a tensor, would have the same name."""
    names = {tensor.name for tensor in state.dag.stages} | {stage.name for stage in state.stages}
    loops = [c_identifier(f"{stage.name}_{loop}") for stage in state.stages if not isinstance(stage.placement, Inlined) for loop in stage.loops]
    return len(names.union(loops)) < len(names) + len(loops)


def _members(state: State, stage: Stage) -> Iterator[Stage]:
    """A stage and those computed inside it."""
    yield stage
    for inner in state.attached(stage.name):
        yield from _members(state, inner)


def _key(state: State, members: list[Stage], numbers: Numbers) -> Key:
    read = _read(state, members)
    own = {stage.name for stage in members}
    borrowed = [state[owner] for stage in members for owner, _ in stage.origins.borrowed.values()]
    borrowed += [one for one in read.values() if one.storage.kept or isinstance(one.storage.copies, str)]  # their buffers have their own numbers
    inlined = tuple((name, id(one.tensor)) for name, one in read.items() if isinstance(one.placement, Inlined))
    outside = tuple((name, one.placement, one.storage) for name, one in read.items() if name not in own)
    return (*(_stage_key(stage, numbers) for stage in members), inlined, outside, *(_stage_key(stage, numbers) for stage in borrowed))


def _read(state: State, stages: list[Stage]) -> dict[str, Stage]:
    """What these stages read, directly or through inlined stages, each once: there may be exponentially many ways to an inlined stage."""
    found: dict[str, Stage] = {}
    unread = list(stages)
    while unread:
        for tensor in access.producers(unread.pop().tensor):
            if tensor.name in state and tensor.name not in found:
                producer = found[tensor.name] = state[tensor.name]
                if isinstance(producer.placement, Inlined):
                    unread.append(producer)
    return found


def _stage_key(stage: Stage, numbers: Numbers) -> Key:
    notes, origins = stage.annotations, stage.origins
    amounts = (notes.parallel, notes.unroll_limit, stage.storage.copies, *notes.vectorize.values())
    lengths = (relation.lengths for relation in origins.relations if isinstance(relation, SplitRelation))
    named = tuple((name, _numbers(numbers[name])) for name in (*amounts, *lengths) if isinstance(name, str))
    mappings = (notes.vectorize, notes.intrinsics, origins.kinds, origins.borrowed)
    return (
        id(stage.tensor), stage.loops, origins.relations, stage.placement, notes.parallel, notes.unroll, notes.unroll_limit, stage.storage, stage.packed,
        *(tuple(one.items()) for one in mappings), named,
    )  # fmt: skip


def _numbers(values: tuple[Int, ...]) -> Key:
    """Numbers as a key; columns are compared by their place."""
    return tuple((value.place,) if isinstance(value, Column) else int(value) for value in values)
