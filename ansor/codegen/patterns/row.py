"""The innermost loop of a plain store as vectors: full ones first, then halves for the tail.

    for j in 20:  y[j] = x[j] + 1     ->     two vectors of 8 lanes, one of 4

    a padding along it       vectors inside, single elements around them
    a guard at its end       a shorter row gets code of its own, or a loop that ends where the guard says
    anything else            a loop
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansor.codegen.chunks import chunks
from ansor.codegen.edges import ANY_LENGTH, Edge, edges, guards_by
from ansor.codegen.emitter import Emitter
from ansor.codegen.partition import Partition, partition
from ansor.codegen.patterns.base import Nest, Pattern, widest
from ansor.codegen.pieces import pieces
from ansor.codegen.tree import Code, block
from ansor.codegen.values import Lanes, contiguous, vectorizable
from ansor.codegen.word_moves import WORD, word_move
from ansor.ir.linear import Linear, Var, of
from ansor.ir.loops import For, Guard, Store

MAX_CHUNKS = 8  # vectors of an elementwise loop up to which it is unrolled


@dataclass(frozen=True, eq=False)
class Row:
    """A loop around a plain store.

    outer: guards that do not depend on the loop; inner: the others, unchanged; ends: the same as ends of the loop, None if they are not; usual: whether
    the last row has few lengths, so that each gets its own code.
    """

    around: tuple[For, ...]
    loop: For
    store: Store
    outer: tuple[Guard, ...]
    inner: tuple[Guard, ...]
    ends: tuple[Edge, ...] | None
    usual: bool

    def __str__(self) -> str:
        cut = "" if not self.inner else ", cut" if self.ends is not None else ", guarded"
        return f"{self.store.buffer.name}: a row along {self.loop.var.name}{cut}"

    def code(self, emit: Emitter) -> list[Code]:
        return emit.where(self.outer, lambda: self._checked(emit))

    def _checked(self, emit: Emitter) -> list[Code]:
        bare = replace(self.store, guards=())
        if self.ends is None:
            return emit.loop(self.loop, emit.store(replace(self.store, guards=self.inner)))
        if self.usual:
            return emit.at_edges(self.ends, {}, lambda counts: row(emit, self.loop, counts.get(self.loop.var, int(self.loop.var.extent)), bare))
        return _of_any_length(emit, self.loop, self.ends, bare)


def row_of(loops: Sequence[For], store: Store) -> Row:
    """The last of the loops as a row."""
    loop = loops[-1]
    outer, inner = guards_by(store.guards, [loop.var])
    usual, any_ends = edges(inner, [loop], []), edges(inner, [loop], [], ANY_LENGTH)
    ends = usual if usual is not None else any_ends
    return Row(tuple(loops[:-1]), loop, store, outer, inner, None if ends is None else tuple(ends), usual is not None)


def _match(nest: Nest) -> Row | None:
    if nest.store.combiner is not None or not nest.loops or not nest.loops[-1].vectorized:
        return None
    return row_of(nest.loops, nest.store)


ROW = Pattern("row", _match)


def row(emit: Emitter, loop: For, count: int, store: Store) -> list[Code]:
    """The first `count` iterations of the innermost loop around a plain store without guards."""
    ranges = partition(store.value, loop.var)
    if contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var):
        return _vectors(emit, loop, 0, count, store)
    if ranges is not None:
        return _padded(emit, loop, count, store, ranges)
    return emit.loop(loop, emit.store(store), count)


def _of_any_length(emit: Emitter, loop: For, ends: Sequence[Edge], store: Store) -> list[Code]:
    """A whole row as vectors, a shorter one by a loop that ends where it ends."""
    extent = int(loop.var.extent)
    whole = " && ".join(f"{emit.writer.index(end.rest)} < {end.high - end.step * (extent - 1)}" for end in ends)
    found: list[Code] = [block(f"if ({whole})", row(emit, loop, extent, store))]
    name, lines = emit.end(loop, ends)
    return [*found, block("else", [*lines, *emit.loop(loop, emit.store(store), name)])]


def _vectors(emit: Emitter, loop: For, begin: int, end: int, store: Store) -> list[Code]:
    """Iterations from `begin` on as vectors."""
    lanes, large, name = widest(store, emit.machine.vector_bytes), bool(pieces(store.value)), loop.var.name
    found: list[Code] = []
    if lanes == 1 and end - begin > MAX_CHUNKS:  # no vectors, and compilers would spill invariants of so many copies
        factor = min(int(loop.runs.unroll_limit), end - begin)
        return [*([f"ANSOR_UNROLL({factor})"] if factor > 1 else []), block(emit.counting(name, begin, end), emit.store(store))]
    whole = (end - begin) // lanes
    if whole > (0 if large else MAX_CHUNKS) and lanes > 1:
        head = emit.counting(name, begin, begin + whole * lanes, lanes)
        found.append(block(head, _lanes(emit, store, Lanes(loop.var, lanes, of(loop.var)))))
        begin += whole * lanes
    rest = chunks(end - begin, lanes)
    if large and rest:
        return [*found, block(emit.counting(name, begin, end), emit.store(store))]
    for offset, count in rest:
        found += _lanes(emit, store, Lanes(loop.var, count, Linear((), begin + offset)))
    return found


def _lanes(emit: Emitter, store: Store, lanes: Lanes) -> list[Code]:
    one: dict[Var, int | Linear] = {lanes.var: int(lanes.start.const)} if lanes.count == 1 else {}
    writer = emit.writer.at(one, None if lanes.count == 1 else lanes)
    moved = word_move(writer, store) if emit.machine.vector_bytes == WORD else None
    if moved is not None:
        return [moved]
    found: list[Code] = []
    value = emit.value(writer, store.value, found)
    return [*found, f"{writer.place(store.buffer, store.index)} = {value};"]


# paddings -------------------------------------------------------------------------------------------------------------------------------------------------


def _padded(emit: Emitter, loop: For, extent: int, store: Store, found: Partition) -> list[Code]:
    """The parts before, inside and after. Usually everything is inside, and runs as vectors."""
    if not any(bound.terms for bound in (*found.lows, *found.highs)):
        return _padded_there(emit, loop, extent, store, found)
    name = loop.var.name
    low, high = (emit.own(f"{name}_{end}{next(emit.numbers)}") for end in ("low", "high"))
    code = _bounds(emit, found, extent, low, high)
    inside = replace(store, value=found.then)
    parts: list[Code] = []
    vectors = contiguous(inside.buffer, inside.index, loop.var) and vectorizable(found.then, loop.var)
    if vectors:
        code.append(block(f"if ({low} == 0 && {high} == {extent})", _vectors(emit, loop, 0, extent, inside)))
    for begin, end, value in (("0", low, found.otherwise), (low, high, found.then), (high, str(extent), found.otherwise)):
        parts.append(block(emit.counting(name, begin, end), emit.store(replace(store, value=value))))
    return [*code, block("else", parts)] if vectors else [*code, *parts]


def _bounds(emit: Emitter, found: Partition, extent: int, low: str, high: str) -> list[Code]:
    """The lines that compute where the inside begins and ends."""
    lows = [emit.writer.index(bound) for bound in found.lows]
    highs = [emit.writer.index(bound) for bound in found.highs]
    code: list[Code] = [f"{emit.index} {low} = 0, {high} = {extent};"]
    code += [f"if ({bound} > {low}) {low} = {bound};" for bound in lows]
    code += [f"if ({bound} < {high}) {high} = {bound};" for bound in highs]
    conditions = [emit.writer.scalar(condition) for condition in found.conditions]
    empty = " || ".join([f"{high} < {low}", *(f"!({condition})" for condition in conditions)])
    return [*code, f"if ({low} > {extent}) {low} = {extent};", f"if ({empty}) {high} = {low};"]


def _padded_there(emit: Emitter, loop: For, extent: int, store: Store, found: Partition) -> list[Code]:
    """A padding at a known place along the innermost loop: vectors inside, single elements around them."""
    low = min(max([0, *(int(bound.const) for bound in found.lows)]), extent)
    high = max(min([extent, *(int(bound.const) for bound in found.highs)]), low)
    inside, outside = replace(store, value=found.then), replace(store, value=found.otherwise)
    head = f"if ({' && '.join(emit.writer.scalar(condition) for condition in found.conditions)})"
    parts: list[Code] = []
    for begin, end, part in ((0, low, outside), (low, high, inside), (high, extent, outside)):
        parts += _part(emit, loop, begin, end, part)
    if not found.conditions:
        return parts
    return [block(head, parts), block("else", _part(emit, loop, 0, extent, outside))]


def _part(emit: Emitter, loop: For, begin: int, end: int, store: Store) -> list[Code]:
    if contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var):
        return _vectors(emit, loop, begin, end, store)
    return [block(emit.counting(loop.var.name, begin, end), emit.store(store))]
