"""The eighteen features of a buffer in a statement: how much is touched, and how soon it is reused."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ansor.cost_model.cache_sets import USUAL, FirstCache
from ansor.cost_model.feature_table import BUFFER_BLOCKS
from ansor.cost_model.nest import Nest, nest_of
from ansor.cost_model.touched import Footprint, Layout, accesses, footprint, layout_of, reads_of
from ansor.ir.columns import Flag, Row, choose, larger, negated, row, smaller
from ansor.ir.linear import Var, variables
from ansor.ir.loops import Buffer, Loops, Store, stores

T = TypeVar("T")

BlockColumns = dict[str, Row]
"""Name within the block -> value."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the rest of the program means for a statement.

    resident: bytes of the cache lines that all statements of the program touch together; begins: variables of loops that no statement before it is in.
    """

    resident: Row = 0.0
    begins: frozenset[Var] = frozenset()


@dataclass(frozen=True, eq=False)
class Entering:
    """What enters a cache just large enough for what the loops inside a boundary touch of a buffer, in the whole program, by boundary. A buffer that does not
    move with the next outer loops enters once for all their iterations.

    bytes: of the elements; waste: bytes of whole cache lines for each of these.
    """

    bytes: tuple[Row, ...]
    waste: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Statement:
    """One store of the program with everything it touches.

    footprints: stored buffer first, then those read, in order; bytes: touched in all buffers, by boundary; room: bytes of the first cache that they take.
    blocks: the buffers that get a block of features; around: what depends on the rest of the program.
    """

    nest: Nest
    footprints: dict[Buffer, Footprint]
    layouts: dict[Buffer, Layout]
    bytes: tuple[Row, ...]
    room: tuple[Row, ...]
    blocks: tuple[Buffer, ...]
    around: Surroundings = Surroundings()

    def once(self, name: Hashable, find: Callable[[], T]) -> T:
        """The cached result of `find` under a unique name. It may only depend on the statement and the name."""
        known = self.nest.found
        if name not in known:
            known[name] = find()
        found: T = known[name]
        return found

    def changed_by(self, buffer: Buffer) -> Sequence[Flag]:
        """The loops that change what is read from a buffer, by level: those that the address moves with, the loop whose body allocates it, and the loops around
        that one, in each of whose iterations it is written anew."""
        moves = self.footprints[buffer].moves
        around = self.nest.kept_before[_loops_around(self.nest, buffer)]
        return [*[True] * around, *moves[around:]]

    @property
    def line_bytes(self) -> tuple[Row, ...]:
        """Bytes of the cache lines that are touched, by boundary."""
        return self.once("line bytes", lambda: _bytes(self.nest, {buffer: one.line_elements for buffer, one in self.footprints.items()}, self.layouts))

    @property
    def entering(self) -> dict[Buffer, Entering]:
        """What enters caches, by buffer."""
        return self.once("entering", lambda: {buffer: _entering(self, buffer) for buffer in self.footprints})

    @property
    def loads(self) -> tuple[Row, ...]:
        """Bytes that the whole program loads into a cache just large enough for what the loops inside that boundary touch."""
        return self.once("loads", lambda: _loads(self))

    def tile_loads(self, capacity: float) -> tuple[Row, ...]:
        """As `loads`, but each iteration of the next outer loop loads a buffer's cache lines again if they do not fit in the sets of a first cache of this
        capacity."""
        return self.once(("tile loads", capacity), lambda: _loads(self, capacity))


def statements_of(loops: Loops, cache: FirstCache = USUAL, known: dict[Store, Statement] | None = None) -> list[Statement]:
    """Every store of the program, in order. known: statements of stores shared with other programs; this program's are added."""
    known = {} if known is None else known
    program = []
    for path, store in stores(loops.body):
        if store not in known:
            known[store] = _statement(nest_of(path, store), cache)
        program.append(known[store])
    resident, entered, found = _resident(program), set[Var](), []
    for statement in program:
        begins = statement.nest.level.keys() - entered
        entered |= begins
        found.append(replace(statement, around=Surroundings(resident, frozenset(begins))))
    return found


def _statement(nest: Nest, cache: FirstCache) -> Statement:
    reads = accesses(nest.store)
    layouts = {buffer: layout_of(buffer) for buffer in reads}
    touched = {buffer: footprint(nest, layouts[buffer], indices, cache) for buffer, indices in reads.items()}
    walked = {buffer: len({var for index in indices for one in index for var in variables(one)}) for buffer, indices in reads.items()}
    shown = _shown(nest.store.buffer, walked)
    touched_bytes = _bytes(nest, {buffer: print_.elements for buffer, print_ in touched.items()}, layouts)
    return Statement(nest, touched, layouts, touched_bytes, _room(touched), shown)


def _resident(program: Sequence[Statement]) -> Row:
    most: dict[Buffer, tuple[Row, float]] = {}
    for statement in program:
        for buffer, print_ in statement.footprints.items():
            elements = larger(most[buffer][0], print_.line_elements[0]) if buffer in most else print_.line_elements[0]
            most[buffer] = elements, float(statement.layouts[buffer].element_bytes)
    return sum((elements * size for elements, size in most.values()), start=0.0)


def _bytes(nest: Nest, elements: dict[Buffer, tuple[Row, ...]], layouts: dict[Buffer, Layout]) -> tuple[Row, ...]:
    """Bytes of all buffers' elements, by boundary."""
    total: list[Row] = [0.0] * len(nest.counts.inside)
    for buffer, counts in elements.items():
        size = float(layouts[buffer].element_bytes)
        total = [sum_ + count * size for sum_, count in zip(total, counts, strict=True)]
    return tuple(total)


def _entering(statement: Statement, buffer: Buffer) -> Entering:
    nest, print_, size = statement.nest, statement.footprints[buffer], float(statement.layouts[buffer].element_bytes)
    entered: list[Row] = []
    kept: Row = 1.0
    for boundary, elements in enumerate(print_.elements):
        if boundary:
            level = boundary - 1
            kept = choose(print_.moves[level] & nest.real[level], 1.0, kept * nest.extents[level])
        entered.append(elements * size * (nest.counts.outside[boundary] / kept))
    shares = [lines / elements for lines, elements in zip(print_.line_elements[:-1], print_.elements[:-1], strict=True)]
    first = shares[:1] or [print_.line_elements[0] / print_.elements[0]]  # the next outer loop may go on within the lines
    return Entering(tuple(entered), (*first, *shares))


def _loads(statement: Statement, capacity: float | None = None) -> tuple[Row, ...]:
    """Bytes loaded in the whole program, by boundary, if everything inside it fits. capacity: see `Statement.tile_loads`."""
    total: list[Row] = [0.0] * len(statement.nest.counts.inside)
    for buffer, one in statement.entering.items():
        print_ = statement.footprints[buffer]
        for boundary, (entered, waste) in enumerate(zip(one.bytes, one.waste, strict=True)):
            if capacity is not None:
                waste = choose(print_.space.room[boundary] <= capacity, waste, print_.line_elements[boundary] / print_.elements[boundary])
            total[boundary] = total[boundary] + entered * waste
    return tuple(total)


def _room(touched: dict[Buffer, Footprint]) -> tuple[Row, ...]:
    """Total room by boundary, never less than that of an inner one."""
    found: list[Row] = []
    for parts in reversed(list(zip(*(print_.space.room for print_ in touched.values()), strict=True))):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        found.append(larger(total, found[-1]) if found else total)
    return tuple(reversed(found))


def _shown(stored: Buffer, walked: dict[Buffer, int]) -> tuple[Buffer, ...]:
    """The buffers that get a block, chosen by structure, so that a block is the same buffer in all programs of a sketch."""
    if len(walked) <= BUFFER_BLOCKS:
        return tuple(walked)
    kept = sorted((buffer for buffer in walked if buffer is not stored), key=lambda buffer: -walked[buffer])[: BUFFER_BLOCKS - 1]
    return tuple(buffer for buffer in walked if buffer is stored or buffer in kept)


@dataclass(frozen=True, eq=False)
class Reuse:
    """The nearest reuse of a buffer; without any, uses is 0."""

    by_loop: Flag
    serial: bool
    iterations: Row
    bytes: Row
    uses: Row


def reuse_of(statement: Statement, buffer: Buffer, program: Sequence[Statement]) -> Reuse:
    """The innermost loop that repeats the access, or whose body holds another statement that touches the buffer."""
    nest, print_ = statement.nest, statement.footprints[buffer]
    by_loop: Flag = False
    iterations: Row = 0.0
    distance: Row = 0.0
    uses: Row = 0.0
    others = [other for other in program if other is not statement and buffer in other.footprints]
    shared = max((_shared_depth(statement, other) for other in others), default=-1)
    if others:
        body = [other for other in program if _shared_depth(statement, other) >= shared]
        boundary = nest.kept_before[shared]
        touching = [other.footprints[buffer].elements[boundary] for other in body if buffer in other.footprints]
        iterations = touching[0]
        for elements in touching[1:]:
            iterations = smaller(iterations, elements)
        for other in body:
            distance = distance + other.bytes[boundary]
        uses = float(len(touching) - 1)
    # A loop outside the one shared with another statement repeats later; one around an allocation repeats nothing.
    first = max(shared - 1, _allocation_depth(nest, buffer), 0)
    for depth in range(first, len(nest.path)):
        level = nest.level.get(nest.path[depth].var)
        if level is None or print_.moves[level] is True:
            continue
        repeats = nest.real[level] & negated(print_.moves[level])
        iterations = choose(repeats, nest.counts.inside[level + 1], iterations)
        distance = choose(repeats, statement.bytes[level + 1], distance)
        uses = choose(repeats, nest.extents[level], uses)
        by_loop = by_loop | repeats
    return Reuse(by_loop, bool(others), iterations, distance, uses)


def _shared_depth(a: Statement, b: Statement) -> int:
    """How many outermost loops are around both."""
    depth = 0
    for x, y in zip(a.nest.path, b.nest.path, strict=False):
        if x is not y:
            break
        depth += 1
    return depth


def _allocation_depth(nest: Nest, buffer: Buffer) -> int:
    """How many loops are around the allocation of a local buffer; 0 for others."""
    return _loops_around(nest, buffer) if buffer.scope == "local" else 0


def _loops_around(nest: Nest, buffer: Buffer) -> int:
    """How many loops are around the allocation of a buffer of any scope."""
    return next((depth for depth, loop in enumerate(nest.path, 1) if any(local is buffer for local in loop.locals)), 0)


def allocation(statement: Statement) -> tuple[Row, Row, Row]:
    """The stored buffer's bytes, elements over the whole run, and iterations of the loops around its allocation."""
    nest, buffer = statement.nest, statement.nest.store.buffer
    layout = statement.layouts[buffer]
    outer: Row = nest.counts.outside[nest.kept_before[_allocation_depth(nest, buffer)]]
    if buffer.scope == "output":
        return 0.0, 0.0, outer
    return layout.size * layout.element_bytes, layout.size * outer, outer


def own_block(statement: Statement, buffer: Buffer) -> BlockColumns:
    """The features of one buffer that do not depend on the rest of the program; see the feature table."""
    return statement.once(("block", buffer), lambda: _own_block(statement, buffer))


def reuse_block(statement: Statement, buffer: Buffer, program: Sequence[Statement]) -> BlockColumns:
    """The others: those about its reuse."""
    reuse, own = reuse_of(statement, buffer, program), own_block(statement, buffer)
    loop, per_use = row(reuse.by_loop), 1.0 / larger(reuse.uses, 0.5)
    return {
        "reuse_loop": loop,
        "reuse_serial" if reuse.serial else "reuse_none": 1.0 - loop,
        "reuse_dis_iter": reuse.iterations,
        "reuse_dis_bytes": reuse.bytes,
        "reuse_ct": reuse.uses,
        **{f"{name}_d_reuse_ct": own[name] * per_use for name in ("bytes", "unique_bytes", "lines", "unique_lines")},
    }


def _own_block(statement: Statement, buffer: Buffer) -> BlockColumns:
    nest, print_, size = statement.nest, statement.footprints[buffer], float(statement.layouts[buffer].element_bytes)
    columns: BlockColumns = {f"acc_{_kind(nest.store, buffer)}": 1.0}
    columns["bytes"] = nest.iterations * (print_.places * size)
    columns["unique_bytes"] = print_.elements[0] * size
    columns["lines"] = print_.lines
    columns["unique_lines"] = print_.unique_lines
    columns["stride"] = _innermost_stride(nest, print_)
    return columns


def _kind(store: Store, buffer: Buffer) -> str:
    if buffer is not store.buffer:
        return "read"
    return "readwrite" if store.combiner is not None or buffer in reads_of(store) else "write"


def _innermost_stride(nest: Nest, print_: Footprint) -> Row:
    stride: Row = 0.0
    for level, step in enumerate(print_.strides):
        stride = choose(nest.real[level], 0.0 if step is None else step, stride)
    return stride
