"""The common part of register tiles: which loops they take, how guards cut them, and results held in local vectors during reductions.

    for k:  for i in 4:  for j in 16:  c[i, j] += a[i, k] * b[k, j]

    eight accumulators of 8 lanes start as the identity, or as the value in c from earlier iterations of outer loops;
    for k:  each takes one step; shared operands are loaded once
    each is stored
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ansor.codegen.chunks import chunks
from ansor.codegen.dialect import C_TYPES, literal
from ansor.codegen.edges import ANY_LENGTH, Edge, edges, guards_by
from ansor.codegen.emitter import Counts, Emitter, opened
from ansor.codegen.patterns.base import names, widest
from ansor.codegen.patterns.plain_loops import PlainLoops
from ansor.codegen.pieces import pieces
from ansor.codegen.prefetch import constants, prefetches
from ansor.codegen.prefetch_beside import prefetches_beside
from ansor.codegen.tensorized import TileText
from ansor.codegen.tree import Code
from ansor.codegen.values import Lanes, Writer, contiguous, vectorizable
from ansor.ir.columns import product
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import For, Guard, Store

MAX_TILE = 96  # the most accumulators of a register tile to unroll
MAX_LARGE_TILE = 4  # the same if each value is computed in pieces

Place = tuple[dict[Var, int], Lanes | None]
"""An accumulator: the values of the unrolled variables, and its lanes."""


@dataclass(frozen=True, eq=False)
class Tile:
    """The part of a nest that is held in registers.

    around: the loops outside. reductions: loops across which results are held; spatial: unrolled loops. outer: guards independent of
    these loops; within: those that only depend on reductions; ends: the others, as ends of spatial loops. enclosing: the loops around the nest.
    """

    around: tuple[For, ...]
    reductions: tuple[For, ...]
    spatial: tuple[For, ...]
    store: Store
    outer: tuple[Guard, ...]
    within: tuple[Guard, ...]
    ends: tuple[Edge, ...]
    enclosing: tuple[For, ...] = ()

    def text(self, kind: str) -> str:
        """In one line."""
        sizes = " x ".join(str(loop.var.extent) for loop in self.spatial) or "one element"
        return f"{self.store.buffer.name}: {kind} of {sizes}, over {names(self.reductions) or 'nothing'}{', cut' if self.ends else ''}"


def tile_start(loops: Sequence[For]) -> int:
    """Where the register tile begins: it has the innermost spatial loops and the reduction loops directly around them, or an innermost vectorised reduction and
    the unrolled spatial loops directly around it.
    """
    k = len(loops)
    while k > 0 and loops[k - 1].kind != "reduce":
        k -= 1
    while k > 0 and loops[k - 1].kind == "reduce":
        k -= 1
    if loops and loops[-1].kind == "reduce" and loops[-1].vectorized:
        while k > 0 and loops[k - 1].kind != "reduce" and loops[k - 1].unrolled:
            k -= 1
    # Without a reduction loop in this nest only the innermost loop belongs to the tile.
    return k if any(loop.kind == "reduce" for loop in loops[k:]) else max(len(loops) - 1, 0)


def tile_of(
    loops: Sequence[For], store: Store, group: tuple[For, ...] = (), enclosing: tuple[For, ...] = (), start: int | None = None
) -> Tile | PlainLoops:  # fmt: skip
    """The tile of a reducing nest; plain loops, with `group` inside, if its guards are not ends of its loops.

    enclosing: the loops around the nest; start: where the tile begins, by default at `tile_start`.
    """
    count = tile_start(loops) if start is None else start
    around, inside = list(loops[:count]), list(loops[count:])
    while True:
        reductions = [loop for loop in inside if loop.kind == "reduce"]
        spatial = [loop for loop in inside if loop.kind != "reduce"]
        outer, rest = guards_by(store.guards, [loop.var for loop in inside])
        within, cut = guards_by(rest, [loop.var for loop in spatial])
        ends = edges(cut, spatial, reductions)
        if ends is not None:
            return Tile(tuple(around), tuple(reductions), tuple(spatial), store, outer, within, tuple(ends), enclosing)
        if len(spatial) <= 1:
            return PlainLoops((*around, *inside, *group), store)
        # Two loops of one axis, for example: without the outer one the tile is smaller, but still held in registers.
        around.append(spatial[0])
        inside = [*reductions, *spatial[1:]]


# places ---------------------------------------------------------------------------------------------------------------------------------------------------


def most(store: Store) -> int:
    """The most accumulators of a register tile to unroll."""
    return MAX_LARGE_TILE if pieces(store.value) else MAX_TILE


def count_of(loop: For, counts: Counts) -> int:
    """Iterations of a loop of a tile."""
    return counts.get(loop.var, int(loop.var.extent))


def places(loops: Sequence[For], counts: Counts, store: Store, lanes: int) -> list[Place]:
    """Every accumulator of a tile with vectors of at most `lanes`."""
    along = _lane_loop(loops, store)
    plain = [loop for loop in loops if loop is not along]
    least = int(product(count_of(loop, counts) for loop in plain)) * (1 if along is None else count_of(along, counts) // lanes)
    if least > MAX_TILE:
        return [({}, None)] * (MAX_TILE + 1)  # too many to unroll in any case
    cut = chunks(count_of(along, counts), lanes) if along is not None else [(0, 1)]
    found: list[Place] = []
    for values in itertools.product(*(range(count_of(loop, counts)) for loop in plain)):
        fixed = {loop.var: value for loop, value in zip(plain, values, strict=True)}
        for offset, count in cut:
            if along is None:
                found.append((fixed, None))
            elif count == 1:
                found.append(({**fixed, along.var: offset}, None))
            else:
                found.append((fixed, Lanes(along.var, count, Linear((), offset))))
    return found


def _lane_loop(loops: Sequence[For], store: Store) -> For | None:
    if not loops or not loops[-1].vectorized:
        return None
    loop = loops[-1]
    return loop if contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var, store.guards) else None


# the tree -------------------------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TileAccumulators:
    """Accumulators of one tile. `before`: outer reduction loops, across which results are stored and reloaded; `number` identifies the tile."""

    number: int
    names: tuple[str, ...]
    places: tuple[Place, ...]
    store: Store
    before: tuple[Var, ...]


class Step(Protocol):
    """One step of the reduction, in every accumulator."""

    def lanes(self, widest: int) -> int:
        """The widest vector it takes."""

    @property
    def group(self) -> tuple[Var, ...]:
        """Reduction loops that it runs itself."""

    def ahead(self, held: TileAccumulators, emit: Emitter) -> TileText | None:
        """Its code, if known before the reduction loops are opened."""

    def each(self, held: TileAccumulators, emit: Emitter) -> list[Code]:
        """Its code otherwise."""


def tile_code(tile: Tile, step: Step, emit: Emitter) -> list[Code]:
    """A tile with its guards checked, and the shorter tiles at its ends."""
    return emit.where(tile.outer, lambda: emit.at_edges(tile.ends, {}, lambda counts: _cut(tile, counts, step, emit)))


def _cut(tile: Tile, counts: Counts, step: Step, emit: Emitter) -> list[Code]:
    lanes = step.lanes(widest(tile.store, emit.machine.vector_bytes))
    found = places(tile.spatial, counts, tile.store, lanes)
    if not tile.spatial or len(found) <= most(tile.store):
        return _held(found, tile.reductions, tile, step, emit)
    # Too many accumulators: fewer are held, and only across one step of the reduction.
    loops = list(tile.spatial)
    while loops and len(found) > most(tile.store):
        found = places(loops[1:], counts, tile.store, lanes)
        loops = loops[1:]
    outside = tile.spatial[: len(tile.spatial) - len(loops)]
    code = _held(found, (), tile, step, emit)
    for loop in reversed(outside):
        code = emit.loop(loop, code, count_of(loop, counts))
    return emit.loops(tile.reductions, code)


def _held(found: Sequence[Place], reductions: Sequence[For], tile: Tile, step: Step, emit: Emitter) -> list[Code]:
    held = {loop.var for loop in reductions} | set(step.group)
    before = tuple(var for var in tile.store.reduce_vars if var not in held)
    number = next(emit.numbers)
    accumulators = tuple(emit.own(f"acc{number}_{k}") for k in range(len(found)))
    return [opened(_accumulating(TileAccumulators(number, accumulators, tuple(found), tile.store, before), reductions, tile, step, emit))]


def _accumulating(held: TileAccumulators, reductions: Sequence[For], tile: Tile, step: Step, emit: Emitter) -> list[Code]:
    code: list[Code] = [*_beside(held, reductions, tile, emit)]
    for name, (fixed, lanes) in zip(held.names, held.places, strict=True):
        code += accumulator(emit, name, emit.writer.at(fixed, lanes), held.store, held.before)
    text = step.ahead(held, emit)
    openings, within = _openings(reductions, len(held.places) * (1 + len(pieces(held.store.value))), tile.within, emit)
    inside = emit.where(within, lambda: step.each(held, emit) if text is None else [*text.inside])
    inside = [*_prefetches(tile, reductions, step, emit), *inside]
    for (loop, end), lines in reversed(openings):
        inside = [*lines, *emit.loop(loop, inside, end)]
    code += [*text.before, *inside, *text.after] if text is not None else inside
    for name, (fixed, lanes) in zip(held.names, held.places, strict=True):
        code.append(f"{emit.writer.at(fixed, lanes).place(held.store.buffer, held.store.index)} = {name};")
    return code


def _beside(held: TileAccumulators, reductions: Sequence[For], tile: Tile, emit: Emitter) -> list[str]:
    """Prefetches of what is read beside the results of a tile, if no other tile of them is computed before they are read."""
    if not tile.enclosing or tile.around or held.before:
        return []
    work = len(held.places) * int(product(loop.var.extent for loop in reductions))
    return prefetches_beside(tile.store, tile.enclosing[-1], [loop.var for loop in tile.spatial], work, emit)


def _prefetches(tile: Tile, reductions: Sequence[For], step: Step, emit: Emitter) -> list[str]:
    """Prefetches of one step, the same in shorter tiles. None outside the reduction loops, and none on bare-metal targets, whose caches are small or absent."""
    reads = constants(tile.store, (*(loop.var for loop in tile.spatial), *step.group))
    if not reads or not reductions or not emit.machine.dialect.hosted:
        return []
    whole = places(tile.spatial, {}, tile.store, step.lanes(widest(tile.store, emit.machine.vector_bytes)))
    loops = (*tile.enclosing, *tile.around, *reductions)
    shared = max((k for k, loop in enumerate(loops, 1) if emit.machine.parallel and loop.parallel), default=0)  # among threads
    found = [line for read in reads for line in prefetches(read, loops[:shared], loops[shared:], len(whole), emit)]
    return list(dict.fromkeys(found))


def accumulator(emit: Emitter, name: str, writer: Writer, store: Store, before: Sequence[Var]) -> list[Code]:
    """The declaration of an accumulator."""
    dtype, lanes = store.buffer.dtype, writer.lanes
    kind = emit.helpers.vector(dtype, lanes.count) if lanes is not None else C_TYPES[dtype]
    identity = literal(store.identity, dtype)
    start = writer.broadcast(identity, dtype) if lanes is not None else identity
    found: list[Code] = [f"{kind} {name} = {start};"]
    if before:
        # A conditional expression on vectors is not C for every compiler; an if statement is.
        first = " || ".join(f"{var.name} != 0" for var in before)
        found.append(f"if ({first}) {name} = {writer.place(store.buffer, store.index)};")
    return found


Opening = tuple[tuple[For, str | None], list[Code]]
"""A loop, its end if earlier than its extent, and the lines before it."""


def _openings(reductions: Sequence[For], statements: int, within: tuple[Guard, ...], emit: Emitter) -> tuple[list[Opening], tuple[Guard, ...]]:
    """The reduction loops of a tile, the inner ones unrolled while the body stays below the limit. A guard becomes the end of the innermost loop that it
    mentions; guards that cannot are returned.
    """
    factors = []
    budget = max((int(loop.runs.unroll_limit) for loop in reductions), default=0) // max(statements, 1)
    for loop in reversed(reductions):
        extent = int(loop.var.extent)
        factors.append(1 if loop.unrolled else min(extent, max(budget, 1)))
        budget = budget // extent if budget >= extent else 0
    openings: list[Opening] = []
    for k, (loop, factor) in enumerate(zip(reductions, reversed(factors), strict=True)):
        own, others = guards_by(within, [inner.var for inner in reductions[k + 1 :]])
        ends = edges(guards_by(own, [loop.var])[1], [loop], [], ANY_LENGTH)
        end, lines = emit.end(loop, ends) if ends else (None, [])
        if end is not None:
            within = (*guards_by(own, [loop.var])[0], *others)
        openings.append(((loop, end), [*lines, *([f"ANSOR_UNROLL({factor})"] if factor > 1 else [])]))
    return openings, within
