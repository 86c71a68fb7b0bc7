"""Reduces elements in vectors of partial results: the accumulators, one step of the reduction, and the final combination.

    f32x4 acc0_0 = {}, acc0_1 = {};                                  several vectors hide the latency of adding,
    for (k = 0; k < 40; k += 8) { acc0_0 += x[k..]; acc0_1 += x[k + 4..]; }
    acc0_by2 += x[40..];  acc0_by1 += x[42];                         narrower ones take the tail,
    fold = acc0_0 + acc0_1, halves of it, + acc0_by2, ...            and all are combined at the end
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ansor.codegen.chunks import chunks
from ansor.codegen.dialect import C_TYPES
from ansor.codegen.edges import guards_by
from ansor.codegen.emitter import Counts, Emitter, opened
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.patterns.tiles import Tile, accumulator, count_of, tile_of
from ansor.codegen.pieces import pieces
from ansor.codegen.tree import Code, block
from ansor.codegen.values import Lanes, Writer, combined, depends, vectorizable
from ansor.ir.linear import Linear, Var, of
from ansor.ir.loops import For, Store

RUNNING = 4  # vectors of partial results per element during its reduction
TOGETHER = 8  # and of several elements together

Width = tuple[int, int]
"""Lanes of an accumulator, and its number among those of that width."""


@dataclass(frozen=True, eq=False)
class VectorReduction:
    """A tile whose innermost reduction loop runs as vectors."""

    tile: Tile
    widest: int

    @property
    def around(self) -> tuple[For, ...]:
        return self.tile.around

    def __str__(self) -> str:
        return f"{self.tile.text('a vectorised reduction')}, {self.widest} lanes"

    def code(self, emit: Emitter) -> list[Code]:
        return emit.where(self.tile.outer, lambda: emit.at_edges(self.tile.ends, {}, lambda counts: [opened(self._elements(emit, counts))]))

    def _elements(self, emit: Emitter, counts: Counts) -> list[Code]:
        """The elements of the tile, with all guards of spatial loops checked."""
        tile, number = self.tile, next(emit.numbers)
        numbers = itertools.product(*(range(count_of(loop, counts)) for loop in tile.spatial))
        elements = [dict(zip((one.var for one in tile.spatial), at, strict=True)) for at in numbers]
        *outer, loop = tile.reductions
        made = partial_results(tile.store, loop.var, elements, self.widest, number, emit)
        code: list[Code] = []
        for name, writer in made.starts(emit.writer):
            code += accumulator(emit, name, writer, tile.store, ())
        code += emit.loops(outer, emit.where(tile.within, lambda: _steps(made, emit)))
        before = tuple(one for one in tile.store.reduce_vars if all(one is not loop.var for loop in tile.reductions))
        for e, fixed in enumerate(elements):
            lines, result = made.folded(e, emit)
            place = emit.writer.at(fixed, None).place(tile.store.buffer, tile.store.index)
            if before:
                result = emit.combined(tile.store, 1, emit.old_value(tile.store, before, place), result)
            code += [*lines, f"{place} = {result};"]
        return code


def _match(nest: Nest) -> VectorReduction | None:
    """Matches if the innermost reduction is vectorized, is long enough, and nothing cuts it short."""
    if nest.store.combiner is None or not any(loop.vectorized and loop.kind == "reduce" for loop in nest.loops):
        return None
    tile = tile_of(nest.loops, nest.store)
    if not isinstance(tile, Tile) or not tile.reductions or not tile.reductions[-1].vectorized:
        return None
    var, value = tile.reductions[-1].var, nest.store.value
    along = nest.widest > 1 and int(var.extent) > 1 and not pieces(value) and vectorizable(value, var, nest.store.guards) and depends(value, var)
    return VectorReduction(tile, nest.widest) if along and not guards_by(tile.within, [var])[1] else None


VECTOR_REDUCTION = Pattern("reduction in vectors", _match)


def _steps(made: PartialResults, emit: Emitter) -> list[Code]:
    """All steps that add to the partial results."""
    code: list[Code] = []
    if made.vectors.looped:
        head = emit.counting(made.var.name, 0, made.vectors.looped * made.widest, made.vectors.running * made.widest)
        code.append(block(head, _added(made, made.steps_of_loop(), emit)))
    return [*code, *_added(made, made.steps_after(), emit)]


def _added(made: PartialResults, steps: Iterable[tuple[Width, Lanes]], emit: Emitter) -> list[Code]:
    """Steps of a reduction, each line after the loads it needs."""
    code: list[Code] = []
    for which, lanes in steps:
        writer = replace(emit.writer, load=emit.shared(next(emit.numbers), code))
        for line in made.step(which, lanes, writer):
            code.append(line)  # one by one: loads are inserted between them
    return code


@dataclass(frozen=True, eq=False)
class Vectors:
    """How a reduction's length is split.

    running: accumulators of the widest vector per element. looped: vectors processed by a loop, `running` per iteration;
    rest: those after it, as (offset, lanes).
    """

    running: int
    looped: int
    rest: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class PartialResults:
    """Some elements of a reducing store, reduced together along `var`.

    elements: values of the variables that identify each element. names: of each element's accumulators.
    """

    store: Store
    var: Var
    widest: int
    elements: tuple[dict[Var, int], ...]
    names: tuple[dict[Width, str], ...]
    labels: tuple[str, ...]
    vectors: Vectors

    def starts(self, writer: Writer) -> Iterator[tuple[str, Writer]]:
        """Each accumulator, and a writer for values of its width."""
        for fixed, names in zip(self.elements, self.names, strict=True):
            for (lanes, _), name in names.items():
                yield name, writer.at(fixed, Lanes(self.var, lanes, Linear()) if lanes > 1 else None)

    def steps_of_loop(self) -> Iterator[tuple[Width, Lanes]]:
        """The steps of one iteration of the loop."""
        for k in range(self.vectors.running):
            yield (self.widest, k), Lanes(self.var, self.widest, of(self.var) + k * self.widest)

    def steps_after(self) -> Iterator[tuple[Width, Lanes]]:
        """The steps after the loop."""
        for k, (offset, lanes) in enumerate(self.vectors.rest):
            yield (lanes, k if lanes == self.widest else 0), Lanes(self.var, lanes, Linear((), offset))

    def step(self, which: Width, lanes: Lanes, writer: Writer) -> Iterator[str]:
        """One vector (or one value) added to an accumulator of each element. `writer.load` names shared loads."""
        assert self.store.combiner is not None
        wraps = writer.helpers.ranges.reduction_may_wrap(self.store)
        for fixed, names in zip(self.elements, self.names, strict=True):
            if lanes.count == 1:
                value = replace(writer.at({**fixed, lanes.var: int(lanes.start.const)}, None), load=None).scalar(self.store.value)
            else:
                value = replace(writer.at(fixed, lanes), load=writer.load if len(self.elements) > 1 else None).vector(self.store.value)
            name = names[which]
            yield f"{name} = {combined(writer.helpers, self.store.combiner, self.store.buffer.dtype, lanes.count, name, value, wraps)};"

    def folded(self, element: int, emit: Emitter) -> tuple[list[str], str]:
        """Statements that combine the accumulators of an element, and the name of the result: the widest in pairs, halved, with those of half the width, ..."""
        dtype, names, lines = self.store.buffer.dtype, self.names[element], []
        lanes = max(width for width, _ in names)
        found = [name for (width, _), name in names.items() if width == lanes]
        while True:
            while len(found) > 1:
                first, second, *others = found
                lines.append(f"{first} = {emit.combined(self.store, lanes, first, second)};")
                found = [*others, first]
            if lanes == 1:
                return lines, found[0]
            name, half = found[0], lanes // 2
            kind = emit.helpers.vector(dtype, half) if half > 1 else C_TYPES[dtype]
            parts = (f"*(const {kind} *)&{name}", f"*((const {kind} *)&{name} + 1)") if half > 1 else (f"{name}[0]", f"{name}[1]")
            fold = emit.own(f"fold{self.labels[element]}_{half}")
            lines.append(f"{kind} {fold} = {emit.combined(self.store, half, *parts)};")
            found = [fold, *([names[half, 0]] if (half, 0) in names else [])]
            lanes = half


def partial_results(store: Store, var: Var, elements: Sequence[dict[Var, int]], widest: int, number: int, emit: Emitter) -> PartialResults:
    """The elements reduced along `var`; `number` makes the names unique among reductions."""
    whole = int(var.extent) // widest
    running = min(RUNNING if len(elements) == 1 else max(TOGETHER // len(elements), 1), whole)
    looped = whole // running * running if running and whole > running else 0
    rest = tuple((looped * widest + offset, lanes) for offset, lanes in chunks(int(var.extent) - looped * widest, widest))
    widths = [(widest, k) for k in range(running)] + [(lanes, 0) for _, lanes in rest if lanes < widest]
    labels = tuple(f"{number}_{e}" if len(elements) > 1 else f"{number}" for e in range(len(elements)))
    names = tuple({(lanes, k): emit.own(f"acc{label}_{k}" if lanes == widest else f"acc{label}_by{lanes}") for lanes, k in widths} for label in labels)
    return PartialResults(store, var, widest, tuple(elements), names, labels, Vectors(running, looped, rest))
