"""Copies that change which loop runs along memory: square blocks, transposed in registers.

    for a: for b: to[a, b] = f(from[b, a])   ->   for blocks of a: for blocks of b: load vectors along a, transpose them, store vectors along b

Written element by element, each vector along b would be gathered with as many loads as it has lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansor.codegen.edges import Edge, edges, guards_by
from ansor.codegen.emitter import Counts, Emitter
from ansor.codegen.patterns.base import Nest, Pattern, widest
from ansor.codegen.patterns.row import row
from ansor.codegen.pieces import pieces
from ansor.codegen.tree import Code, nested
from ansor.codegen.values import Lanes, Writer, computable, contiguous, depends, flat_index, in_bounds, linear_in, vectorizable
from ansor.ir.linear import Linear, Var, of
from ansor.ir.loops import Access, For, Guard, Store
from ansor.ir.simplify import chain, comparison_of, conjuncts
from ansor.te.dtypes import BYTES
from ansor.te.expr import Binary, Expr, Select
from ansor.te.fold import walk

LEAST = 4  # lanes of the smallest block
MAX_READS = 2  # blocks held in registers at once
STRIPS = 2  # at least per thread, else the loop is distributed by single iterations
START = Linear()


@dataclass(frozen=True, eq=False)
class GuardedValue:
    """A value and its conditions; if they do not hold, the store has another value."""

    value: Expr
    tests: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Limits:
    """conditions: guards independent of both loops; ends: the others."""

    conditions: tuple[Guard, ...]
    ends: tuple[Edge, ...]


@dataclass(frozen=True, eq=False)
class TransposedCopy:
    """Two loops of a perfect nest around a plain store: it is contiguous along `along`, and the arrays of `reads` are contiguous along `across`.

    around: the other loops. store: without guards, which `limits` has. chosen: what is stored. lanes: of the widest vector.
    """

    around: tuple[For, ...]
    across: For
    along: For
    store: Store
    reads: tuple[Access, ...]
    chosen: GuardedValue
    limits: Limits
    lanes: int

    @property
    def loops(self) -> tuple[For, For]:
        """Both loops."""
        return self.across, self.along

    @property
    def once(self) -> bool:
        """Whether blocks may not overlap."""
        return _in_place(self.store)

    def __str__(self) -> str:
        return f"{self.store.buffer.name}: transposed in blocks of {self.lanes}, {self.across.var.name} across and {self.along.var.name} along memory"

    def code(self, emit: Emitter) -> list[Code]:
        return emit.where(self.limits.conditions, lambda: emit.at_edges(self.limits.ends, {}, lambda counts: self._cut(emit, counts)))

    def _cut(self, emit: Emitter, counts: Counts) -> list[Code]:
        """All guards checked."""
        if self.blocked(counts):
            return list(blocks_code(self, counts, emit))
        along = row(emit, self.along, counts.get(self.along.var, int(self.along.var.extent)), self.store)
        return emit.loop(self.across, along, counts.get(self.across.var))

    def blocked(self, counts: Mapping[Var, int]) -> bool:
        """Whether tiles cut to `counts` are long enough for blocks, and have few enough lengths not to bloat the code."""
        extents = [counts.get(loop.var, int(loop.var.extent)) for loop in self.loops]
        usual = all(len(end.partial(int(end.var.extent))) <= 1 for end in self.limits.ends)
        return min(extents) >= LEAST and (usual or not counts) and not (self.once and any(extent % LEAST for extent in extents))


def transposed_copy(loops: Sequence[For], store: Store, lanes: int) -> TransposedCopy | None:
    """The plane of a perfect nest that reads across memory what it writes along it; None if there is none, or blocks do not pay."""
    if len(loops) < 2 or store.combiner or not loops[-1].vectorized or lanes < LEAST:
        return None
    *others, along = loops
    value, tests = _condition(store.value)
    if not contiguous(store.buffer, store.index, along.var) or not vectorizable(value, along.var) or pieces(value):
        return None
    reads = tuple(node for node in walk(value) if isinstance(node, Access) and _stride(node, along.var) > 1)
    across = next((loop for loop in reversed(others) if reads and all(_stride(read, loop.var) == 1 for read in reads)), None)
    if across is None or len(reads) > MAX_READS or any(BYTES[read.dtype] < 4 for read in reads) or not _ahead(value, reads):
        return None
    if any(isinstance(node, Access) and node.buffer is store.buffer for node in walk(value)) or not all(_bounded(test, across, along) for test in tests):
        return None
    conditions, cut = guards_by(store.guards, [across.var, along.var])
    ends = edges(cut, [across, along], [])
    extents = int(across.var.extent), int(along.var.extent)
    if ends is None or min(extents) < LEAST or (_in_place(store) and any(extent % LEAST for extent in extents)):
        return None
    around = tuple(loop for loop in others if loop is not across)
    return TransposedCopy(around, across, along, replace(store, guards=()), reads, GuardedValue(value, tests), Limits(conditions, tuple(ends)), lanes)


def _match(nest: Nest) -> TransposedCopy | None:
    return transposed_copy(nest.loops, nest.store, nest.widest) if nest.store.combiner is None else None


TRANSPOSED_COPY = Pattern("transposed copy", _match)


def _condition(value: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """The value inside a padding, and the tests for being inside."""
    if isinstance(value, Select) and computable(value.condition):
        return value.then, tuple(conjuncts(value.condition))
    return value, ()


def _stride(read: Access, var: Var) -> int:
    """Elements between neighbours along `var`, 0 if they are not evenly spaced."""
    flat = flat_index(read.buffer, read.index)
    return int(flat.coefficient(var)) if linear_in(flat, var) else 0


def _ahead(value: Expr, reads: tuple[Access, ...]) -> bool:
    """Whether the arrays may be read before the value is computed: nothing guards them, or they are always in bounds."""
    guarded = any(isinstance(node, Select) or (isinstance(node, Binary) and node.op in ("and", "or")) for node in walk(value))
    return not guarded or all(map(in_bounds, reads))


def _in_place(store: Store) -> bool:
    """Whether the result may lie over an operand, as networks of bytes place theirs: blocks that overlap would read what they have stored."""
    return BYTES[store.buffer.dtype] == 1 and any(isinstance(node, Access) and BYTES[node.buffer.dtype] == 1 for node in walk(store.value))


def _bounded(test: Expr, across: For, along: For) -> bool:
    """Whether a test holds for a whole block if it holds for one corner, or is constant in it."""
    if not any(depends(test, loop.var) for loop in (across, along)):
        return True
    difference = _difference(test)
    return difference is not None and all(linear_in(difference, loop.var) for loop in (across, along))


def _difference(test: Expr) -> Linear | None:
    """A difference that is negative, or 0, where a comparison of indices holds."""
    compared = comparison_of(test)
    if compared is None:
        return None
    op, left, right = compared
    return left - right if op in ("lt", "le") else right - left


# the tree ---------------------------------------------------------------------------------------------------------------------------------------------


def blocks(extent: int, widest: int, once: bool = False) -> list[tuple[int, int, int]]:
    """`extent` >= LEAST in ranges (begin, end, lanes) of whole blocks. The rest is covered by an overlapping block at the end, which stores some
    elements twice with the same values; or, `once`, by smaller blocks, of an extent that LEAST divides.
    """
    if once:
        return list(_apart(extent, widest))
    lanes = widest
    while lanes > extent:
        lanes //= 2
    whole = extent // lanes * lanes
    found = [(0, whole, lanes)]
    if whole < extent:
        rest = LEAST
        while rest < extent - whole:
            rest *= 2
        found.append((extent - rest, extent, rest))
    return found


def _apart(extent: int, widest: int) -> Iterator[tuple[int, int, int]]:
    begin, lanes = 0, widest
    while begin < extent:
        end = begin + (extent - begin) // lanes * lanes
        if end > begin:
            yield begin, end, lanes
        begin, lanes = end, lanes // 2


def blocks_code(plane: TransposedCopy, counts: Counts, emit: Emitter, first: Linear = START) -> Iterator[Code]:
    """One plane, its guards checked, from iteration `first` of `across` on."""
    rows, columns = (blocks(counts.get(loop.var, int(loop.var.extent)), plane.lanes, plane.once) for loop in plane.loops)
    for high in rows:
        for wide in columns:
            size = min(high[2], wide[2])
            heads, starts = [], []
            for loop, (begin, end, _) in zip(plane.loops, (high, wide), strict=True):
                if end - begin == size:
                    starts.append(Linear((), begin))
                    continue
                start = Var(emit.numbered(f"{loop.var.name}_block"), loop.var.extent)
                starts.append(of(start))
                heads.append(emit.counting(start.name, begin, end, size))
            yield from nested(heads or [""], _checked(plane, Square(size, first + starts[0], starts[1]), emit))


@dataclass(frozen=True, eq=False)
class Strips:
    """A plane across a loop distributed over threads, `length` iterations at a time."""

    plane: TransposedCopy
    length: int

    def __str__(self) -> str:
        return f"{self.plane}, a strip of {self.length} each"

    @property
    def count(self) -> int:
        """The number of strips."""
        return int(self.plane.across.var.extent) // self.length

    def code(self, emit: Emitter) -> list[Code]:
        """Each task transposes a strip."""
        plane = self.plane
        first = Var(emit.own(f"{plane.across.var.name}_first"), plane.across.var.extent)
        inside = emit.where(plane.limits.conditions, lambda: list(blocks_code(plane, {plane.across.var: self.length}, emit, of(first))))
        return [f"const long {first.name} = task * {self.length};", *emit.loops(plane.around, inside)]


def strips(loop: For, vector_bytes: int, threads: int) -> Strips | None:
    """The strips of a parallel loop, if nothing cuts the plane and they divide it evenly into enough strips; no two threads then write the same element."""
    inner, store = chain(loop)
    plane = transposed_copy(inner, store, widest(store, vector_bytes)) if store is not None else None
    if plane is None or plane.across is not loop or plane.limits.ends:
        return None
    length, extent = plane.lanes, int(loop.var.extent)
    while length >= LEAST and (extent % length or extent // length < STRIPS * threads):
        length //= 2
    return Strips(plane, length) if length >= LEAST else None


@dataclass(frozen=True, eq=False)
class Square:
    """A square of `size` iterations of both loops of a plane, and its start."""

    size: int
    across: Linear
    along: Linear


def _checked(plane: TransposedCopy, square: Square, emit: Emitter) -> list[Code]:
    """A block; element by element if its tests do not hold for all of it."""
    code, writer, store = list(_turned(plane, square, emit)), emit.writer, plane.store
    if not plane.chosen.tests:
        return code
    whole = nested([f"if ({' && '.join(_corner(test, plane, square, writer) for test in plane.chosen.tests)})"], code)
    heads = ["else"]
    for loop, start in zip(plane.loops, (square.across, square.along), strict=True):
        heads.append(emit.counting(loop.var.name, writer.index(start), writer.index(start + square.size)))
    return [*whole, *nested(heads, [f"{writer.place(store.buffer, store.index)} = {writer.scalar(store.value)};"])]


def _corner(test: Expr, plane: TransposedCopy, square: Square, writer: Writer) -> str:
    """A test at the corner of a block where it fails first."""
    difference = _difference(test)
    if difference is None or not any(depends(test, loop.var) for loop in plane.loops):
        return writer.scalar(test)
    fixed = {}
    for loop, start in zip(plane.loops, (square.across, square.along), strict=True):
        fixed[loop.var] = start + (square.size - 1 if int(difference.coefficient(loop.var)) > 0 else 0)
    assert isinstance(test, Binary)
    return f"{writer.at(fixed, None).index(difference)} {'<' if test.op in ('lt', 'gt') else '<='} 0"


def _turned(plane: TransposedCopy, square: Square, emit: Emitter) -> Iterator[Code]:
    """Loads along `across`, the transposition, stores along `along`."""
    size, (across, along) = square.size, (loop.var for loop in plane.loops)
    names, writer, store = {read: emit.numbered("block") for read in plane.reads}, emit.writer, plane.store
    for read, block_name in names.items():
        yield f"{writer.helpers.vector(read.dtype, size)} {block_name}[{size}];"
        for k in range(size):
            column = writer.at({along: square.along + k}, Lanes(across, size, square.across))
            yield f"{block_name}[{k}] = {column.vector(read)};"
        yield f"{writer.helpers.transposition(read.dtype, size)}({block_name});"
    for k in range(size):
        held = {read: f"{block_name}[{k}]" for read, block_name in names.items()}
        row = replace(writer.at({across: square.across + k}, Lanes(along, size, square.along)), held=held)
        yield f"{row.place(store.buffer, store.index)} = {row.vector(plane.chosen.value)};"

