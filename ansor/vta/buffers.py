"""Buffers in the memories of a core: where each copy begins, and how its contents are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ansor.errors import ScheduleError
from ansor.ir.linear import Var
from ansor.ir.loops import Access, Buffer, For, Loops, Node, stores
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.nests import Blocks, Nest, multiplied
from ansor.vta.shared import needed_twice

MEMORIES = {"inp": Memory.INP, "wgt": Memory.WGT, "acc": Memory.ACC}
"""Scopes of buffers, and the memory of each."""


class SpareElement(Access):
    """The element at the same index in the spare space next to a buffer."""

    __slots__ = ()


@dataclass(eq=False)
class CopyContents:
    """The contents of a copy of a buffer. strides: of each dimension, in elements; key: what was loaded, None if the contents were changed since."""

    strides: tuple[int, ...] = ()
    key: object = None


@dataclass(eq=False)
class Place:
    """A buffer in a memory. order: its dimensions from outermost to innermost; base: the first element; size: elements of a copy; spare: the first element of
    spare space of the same size, for products before they are summed and for values that are needed twice."""

    buffer: Buffer
    blocks: Blocks
    order: tuple[int, ...]
    base: int
    size: int
    copies: list[CopyContents] = field(default_factory=list)
    current: int = 0
    spare: int = 0

    @property
    def memory(self) -> Memory:
        """The memory that it is in."""
        return MEMORIES[self.buffer.scope]

    @property
    def start(self) -> int:
        """The first element of the current copy."""
        return self.base + self.current * self.size

    @property
    def thing(self) -> tuple[Memory, int]:
        """The key of the current copy, for the order of instructions."""
        return self.memory, self.start

    @property
    def held(self) -> CopyContents:
        """The contents of the current copy."""
        return self.copies[self.current]

    def turn(self, counts: Sequence[int], key: object = None) -> None:
        """Switch to the next copy. It stores this many elements along each dimension, densely."""
        self.current = (self.current + 1) % len(self.copies)
        strides, step = [0] * len(counts), 1
        for dimension in reversed(self.order):
            strides[dimension] = step
            step *= counts[dimension]
        self.copies[self.current] = CopyContents(tuple(strides), key)

    def find(self, key: object) -> bool:
        """Switch to the copy that holds this; returns whether there is one."""
        for number, held in enumerate(self.copies):
            if held.key is not None and held.key == key:
                self.current = number
                return True
        return False

    def element(self, access: Access, nest: Nest) -> tuple[int, dict[Var, int]]:
        """The element of the memory at which an access begins, and its stride in each loop."""
        start = self.spare if isinstance(access, SpareElement) else self.start
        steps: dict[Var, int] = {}
        for dimension, (linear, stride) in enumerate(zip(access.index, self.held.strides, strict=True)):
            index, block = nest.index(linear), self.blocks.get(dimension, 1)
            start += index.start // block * stride
            for var, step in index.steps.items():
                if var in nest.along and (step != 1 or block != nest.along[var]):
                    raise ScheduleError(f"asked for a VTA program with a loop along blocks of {nest.along[var]} that reads {self.buffer.name} across them")
                steps[var] = steps.get(var, 0) + (stride if var in nest.along else step // block * stride)
        return start, steps


def places_of(loops: Loops, lanes: Mapping[Buffer, Blocks], orders: Mapping[Buffer, tuple[int, ...]], configuration: Configuration) -> dict[Buffer, Place]:
    """A place for every buffer in a memory of the core, one after the other. Raises ScheduleError if a memory is too small."""
    used = dict.fromkeys(Memory, 0)
    doubled = doubled_in(loops)
    found = {}
    for buffer in scoped(loops):
        memory, blocks = MEMORIES[buffer.scope], lanes[buffer]
        size = prod(-(-int(extent) // blocks.get(dimension, 1)) for dimension, extent in enumerate(buffer.shape))
        copies = int(buffer.copies)
        end = used[memory] + size * copies
        found[buffer] = Place(buffer, blocks, orders[buffer], used[memory], size, [CopyContents() for _ in range(copies)], copies - 1, end)
        used[memory] = end + size * (buffer in doubled)
    for memory, count in used.items():
        if count > configuration.depth(memory):
            raise ScheduleError(f"asked for a VTA program with {count} elements in {memory.name}, which has {configuration.depth(memory)}: use smaller tiles")
    return found


def doubled_in(loops: Loops) -> set[Buffer]:
    """The buffers that need spare space of the same size, for products or for a value that is needed twice."""
    body = [store for _, store in stores(loops.body)]
    twice = (needed_twice(store.value) for store in body if store.buffer.scope == "output")
    products = {store.buffer for store in body if store.buffer.scope == "acc" and multiplied(store) is not None}
    return products | {access.buffer for access in twice if access is not None}


def scoped(loops: Loops) -> Iterator[Buffer]:
    """The buffers in memories of the core, in program order."""
    yield from (buffer for buffer in loops.intermediates if buffer.scope in MEMORIES)
    for node in loops.body:
        yield from _inside(node)


def _inside(node: Node) -> Iterator[Buffer]:
    if isinstance(node, For):
        yield from (buffer for buffer in node.locals if buffer.scope in MEMORIES)
        for inner in node.body:
            yield from _inside(inner)
