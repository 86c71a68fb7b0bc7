"""A reducing nest as blocks of matrix registers: an instruction multiplies rows of one operand with columns of the other, over several groups at once.

    for i in 32:  for k_0 in 16:  for j in 32:  for k_1 in 4:  c[i, j] += int32(a[i, k_0, k_1]) * int32(b[k_0, j, k_1])

    registers 0 to 3 are zero, or the blocks of c from earlier iterations of outer loops;
    for k_0 in steps of 16:  two blocks of a, two of b, four products
    registers 0 to 3 are stored in c
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.codegen.chunks import divided, whole_first
from ansor.codegen.emitter import Counts, Emitter, opened
from ansor.codegen.matrix_registers import ROW_BYTES, Shape, macros
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.patterns.tiles import Tile, count_of, tile_of
from ansor.codegen.tensorized import InnerProduct, inner_product, memory_step
from ansor.codegen.tree import Code
from ansor.codegen.values import Writer, contiguous, mentions
from ansor.ir.intrinsics import Block, Intrinsic
from ansor.ir.linear import Var
from ansor.ir.loops import Access, For
from ansor.te.dtypes import BYTES

MOST_BLOCKS = 64
"""Blocks of a tile to write out."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a block: evenly spaced in `a` and in the result. first: the unrolled variables of the first row; steps: bytes between rows of each."""

    first: dict[Var, int]
    count: int
    steps: tuple[int, int]


@dataclass(frozen=True, eq=False)
class BlockTile:
    """A tile of blocks. a, b: the operands; depth: the loop over groups that one instruction runs."""

    tile: Tile
    inner: InnerProduct
    a: Access
    b: Access
    block: Block
    depth: For

    @property
    def around(self) -> tuple[For, ...]:
        return self.tile.around

    def __str__(self) -> str:
        return self.tile.text(f"blocks of {self.inner.intrinsic.name}")

    def code(self, emit: Emitter) -> list[Code]:
        return emit.where(self.tile.outer, lambda: emit.at_edges(self.tile.ends, {}, lambda counts: _Blocks(self, counts, emit).code()))


class _Blocks:
    """Writes the blocks of a tile of some length. a, b: the first registers of each operand, after those of results. They are always the same, so that most
    blocks have the same shapes."""

    def __init__(self, form: BlockTile, counts: Counts, emit: Emitter) -> None:
        self.form, self.counts, self.emit = form, counts, emit
        self.store, block, self.name = form.tile.store, form.block, macros(emit.helpers, form.inner.intrinsic)
        held = {loop.var for loop in form.tile.reductions} | {form.inner.group}
        self.held, self.a, self.b = block.held, block.held**2, block.held**2 + block.held
        self.before = tuple(var for var in self.store.reduce_vars if var not in held)

    def code(self) -> list[Code]:
        """All blocks, those that share operands together."""
        lanes = self.form.tile.spatial[-1]
        columns = whole_first(count_of(lanes, self.counts), max(self.form.inner.intrinsic.lanes))
        found: list[Code] = []
        for rows in self._alike():
            for i, j in itertools.product(range(0, len(rows), self.held), range(0, len(columns), self.held)):
                found += self._product(rows[i : i + self.held], columns[j : j + self.held])
        return found

    def _alike(self) -> Iterator[list[Rows]]:
        """Blocks of rows, with those together that read the same columns."""
        place, alike = None, list[Rows]()
        for rows in self._rows():
            other = self._at(rows.first).flat(self.form.b.buffer, self.form.b.index)
            if place is not None and (other.terms, other.const) != place:
                yield alike
                alike = []
            place = other.terms, other.const
            alike.append(rows)
        yield alike

    def _rows(self) -> Iterator[Rows]:
        """The rows of the tile, as few blocks as possible, of equal length where that is possible."""
        run: list[dict[Var, int]] = []
        steps: tuple[int, int] | None = None
        for fixed in self._fixed():
            step = self._step(run[-1], fixed) if run else None
            if run and (step is None or (steps is not None and step != steps)):
                yield from self._cut(run, steps)
                run, steps = [], None
            elif run:
                steps = step
            run.append(fixed)
        yield from self._cut(run, steps)

    def _cut(self, run: Sequence[dict[Var, int]], steps: tuple[int, int] | None) -> Iterator[Rows]:
        for begin, count in divided(len(run), self.form.block.rows):
            yield Rows(run[begin], count, steps or (ROW_BYTES, ROW_BYTES))

    def _fixed(self) -> Iterator[dict[Var, int]]:
        """The unrolled variables of each row."""
        found: list[dict[Var, int]] = [{}]
        for loop in self.form.tile.spatial[:-1]:
            found = [{**fixed, loop.var: value} for fixed in found for value in range(count_of(loop, self.counts))]
        yield from found

    def _step(self, one: dict[Var, int], other: dict[Var, int]) -> tuple[int, int] | None:
        """Bytes from a row to another, in `a` and in the result, if they read the same columns."""
        places = [[self._at(fixed).flat(buffer, index) for fixed in (one, other)] for buffer, index in (
            (self.form.a.buffer, self.form.a.index), (self.store.buffer, self.store.index), (self.form.b.buffer, self.form.b.index),
        )]  # fmt: skip
        if any(start.terms != end.terms for start, end in places):
            return None
        a, result, b = (int(end.const) - int(start.const) for start, end in places)
        return None if b else (a * BYTES[self.form.a.dtype], result * BYTES[self.store.buffer.dtype])

    def _product(self, rows: Sequence[Rows], columns: Sequence[tuple[int, int]]) -> list[Code]:
        """The blocks of some rows and columns, held in registers through the reduction."""
        form = self.form
        group, groups = form.inner.intrinsic.group * BYTES[form.a.dtype], int(form.depth.var.extent)
        lanes, step = form.tile.spatial[-1].var, (memory_step(form.b, form.depth.var) or 0) * BYTES[form.b.dtype]
        blocks = list(itertools.product(enumerate(rows), enumerate(columns)))
        shape = {self._result(i, j): (one.count, group * width) for (i, one), (j, (_, width)) in blocks}
        shape |= {self.a + i: (one.count, group * groups) for i, one in enumerate(rows)}
        shape |= {self.b + j: (groups, group * width) for j, (_, width) in enumerate(columns)}
        loads = [self._load(self.a + i, form.a, one.first, one.steps[0]) for i, one in enumerate(rows)]
        loads += [self._load(self.b + j, form.b, {**rows[0].first, lanes: start}, step) for j, (start, _) in enumerate(columns)]
        dots = [f"{self.name}_dot({self._result(i, j)}, {self.a + i}, {self.b + j});" for (i, _), (j, _) in blocks]
        inside = self.emit.where(form.tile.within, lambda: [*loads, *dots])
        places = [(self._result(i, j), one, start) for (i, one), (j, (start, _)) in blocks]
        begun = [self._begun(*place) for place in places]
        stored = [self._moved("store", *place) for place in places]
        return self._shaped(shape, [*begun, *self.emit.loops(form.tile.reductions[:-1], inside), *stored])

    def _result(self, i: int, j: int) -> int:
        """The register of a product."""
        return i * self.held + j

    def _shaped(self, shape: Shape, body: list[Code]) -> list[Code]:
        """Code for registers of a shape, in a function that has loaded its first shape."""
        name, first = self.emit.registers.named(shape, self.name, self.emit.own)
        return [opened(body)] if name == first else [f"{self.name}_shape({name});", opened(body), f"{self.name}_shape({first});"]

    def _begun(self, number: int, rows: Rows, start: int) -> str:
        """A block of results at first: zero, or those of earlier iterations."""
        zero = f"{self.name}_zero({number});"
        if not self.before:
            return zero
        return f"if ({' && '.join(f'{var.name} == 0' for var in self.before)}) {zero} else {self._moved('load', number, rows, start)}"

    def _moved(self, what: str, number: int, rows: Rows, start: int) -> str:
        writer = self._at({**rows.first, self.form.tile.spatial[-1].var: start})
        place = writer.index(writer.flat(self.store.buffer, self.store.index))
        return f"{self.name}_{what}({number}, &{self.store.buffer.name}[{place}], {rows.steps[1]});"

    def _load(self, number: int, access: Access, fixed: dict[Var, int], step: int) -> str:
        writer = self._at(fixed)
        return f"{self.name}_load({number}, &{access.buffer.name}[{writer.index(writer.flat(access.buffer, access.index))}], {step});"

    def _at(self, fixed: dict[Var, int]) -> Writer:
        zeros = {self.form.inner.group: 0, self.form.depth.var: 0, self.form.tile.spatial[-1].var: 0}
        return self.emit.writer.at({**zeros, **fixed}, None)


def _match(nest: Nest) -> BlockTile | None:
    inner = inner_product(nest.loops, nest.store)
    if inner is None or inner.intrinsic.block is None or len(nest.loops) < 3:
        return None
    a, b, depth, size = inner.a, inner.b, nest.loops[-3], inner.intrinsic.group
    if depth.kind != "reduce" or int(depth.var.extent) > inner.intrinsic.block.groups or not contiguous(nest.store.buffer, nest.store.index, inner.lanes):
        return None
    if not isinstance(a, Access) or not isinstance(b, Access) or memory_step(b, depth.var) is None:
        return None
    if (memory_step(a, inner.group), memory_step(a, depth.var)) != (1, size) or (memory_step(b, inner.group), memory_step(b, inner.lanes)) != (1, size):
        return None
    tile = tile_of(nest.loops[:-1], nest.store, nest.loops[-1:], nest.enclosing, _start(nest.loops[:-1], inner.intrinsic))
    if not isinstance(tile, Tile) or any(mentions(guard.value, depth.var) for guard in (*tile.within, *tile.outer)):
        return None
    return BlockTile(tile, inner, a, b, inner.intrinsic.block, depth)


def _start(loops: Sequence[For], intrinsic: Intrinsic) -> int:
    """Where the tile begins: lanes and groups, the rows around them, as many as are written out, and the reductions around those."""
    k, elements = len(loops) - 2, int(loops[-1].var.extent)
    most = MOST_BLOCKS * max(intrinsic.lanes) * (intrinsic.block.rows if intrinsic.block else 1)
    while k > 0 and loops[k - 1].kind != "reduce" and elements * int(loops[k - 1].var.extent) <= most:
        k -= 1
        elements *= int(loops[k].var.extent)
    while k > 0 and loops[k - 1].kind == "reduce":
        k -= 1
    return k


BLOCK_TILE = Pattern("block tile", _match)
