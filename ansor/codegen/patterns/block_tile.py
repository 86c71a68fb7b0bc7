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
from ansor.codegen.values import contiguous, mentions
from ansor.ir.intrinsics import Block
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Store
from ansor.te.dtypes import BYTES


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
    """Writes the blocks of a tile of some length. first_a, first_b: the first registers of each operand, after those of results. They are always the same, so
    that most blocks have the same shapes."""

    def __init__(self, form: BlockTile, counts: Counts, emit: Emitter) -> None:
        self.form, self.counts, self.emit, self.store = form, counts, emit, form.tile.store
        self.macros, self.lanes = macros(emit.helpers, form.inner.intrinsic), form.tile.spatial[-1]
        self.most = form.block.held
        self.first_a, self.first_b = self.most**2, self.most**2 + self.most
        run_inside = {loop.var for loop in form.tile.reductions} | {form.inner.group}
        self.before = tuple(var for var in self.store.reduce_vars if var not in run_inside)

    def code(self) -> list[Code]:
        """All blocks, those that share operands together."""
        columns = whole_first(count_of(self.lanes, self.counts), max(self.form.inner.intrinsic.lanes))
        found: list[Code] = []
        for rows in self._alike():
            for i, j in itertools.product(range(0, len(rows), self.most), range(0, len(columns), self.most)):
                found += self._product(rows[i : i + self.most], columns[j : j + self.most])
        return found

    # rows -----------------------------------------------------------------------------------------------------------------------------------------

    def _alike(self) -> Iterator[list[Rows]]:
        """Blocks of rows, with those together that read the same columns."""
        alike = list[Rows]()
        for rows in self._rows():
            if alike and _distance(self._place(self.form.b, alike[-1].first), self._place(self.form.b, rows.first)) != 0:
                yield alike
                alike = []
            alike.append(rows)
        yield alike

    def _rows(self) -> Iterator[Rows]:
        """The rows of the tile, as few blocks as possible, of equal length where that is possible."""
        run: list[dict[Var, int]] = []
        steps: tuple[int, int] | None = None
        for fixed in self._fixed():
            found = self._steps(run[-1], fixed) if run else None
            if run and (found is None or steps not in (None, found)):
                yield from self._cut(run, steps)
                run, found = [], None
            run.append(fixed)
            steps = found
        yield from self._cut(run, steps)

    def _cut(self, run: Sequence[dict[Var, int]], steps: tuple[int, int] | None) -> Iterator[Rows]:
        for begin, count in divided(len(run), self.form.block.rows):
            yield Rows(run[begin], count, steps or (ROW_BYTES, ROW_BYTES))  # a single row may have any steps

    def _fixed(self) -> Iterator[dict[Var, int]]:
        """The unrolled variables of each row."""
        loops = self.form.tile.spatial[:-1]
        for values in itertools.product(*(range(count_of(loop, self.counts)) for loop in loops)):
            yield {loop.var: value for loop, value in zip(loops, values, strict=True)}

    def _steps(self, one: dict[Var, int], other: dict[Var, int]) -> tuple[int, int] | None:
        """Bytes from a row to the next in `a` and in the result; None if they may not be in one block."""
        a, b, result = (_distance(self._place(access, one), self._place(access, other)) for access in (self.form.a, self.form.b, self.store))
        if a is None or result is None or b != 0:
            return None
        return a * BYTES[self.form.a.dtype], result * BYTES[self.store.buffer.dtype]

    # products -------------------------------------------------------------------------------------------------------------------------------------

    def _product(self, rows: Sequence[Rows], columns: Sequence[tuple[int, int]]) -> list[Code]:
        """The blocks of some rows and columns, held in registers through the reduction."""
        blocks = [(i * self.most + j, one, start) for i, one in enumerate(rows) for j, (start, _) in enumerate(columns)]
        dots = [f"{self.macros}_dot({number}, {self.first_a + number // self.most}, {self.first_b + number % self.most});" for number, _, _ in blocks]
        inside = self.emit.where(self.form.tile.within, lambda: [*self._loads(rows, columns), *dots])
        begun = [self._begun(*block) for block in blocks]
        stored = [self._moved("store", *block) for block in blocks]
        return self._shaped(self._shape(rows, columns), [*begun, *self.emit.loops(self.form.tile.reductions[:-1], inside), *stored])

    def _shape(self, rows: Sequence[Rows], columns: Sequence[tuple[int, int]]) -> Shape:
        group, groups = self.form.inner.intrinsic.group * BYTES[self.form.a.dtype], int(self.form.depth.var.extent)
        results = {i * self.most + j: (one.count, group * width) for i, one in enumerate(rows) for j, (_, width) in enumerate(columns)}
        a = {self.first_a + i: (one.count, group * groups) for i, one in enumerate(rows)}
        b = {self.first_b + j: (groups, group * width) for j, (_, width) in enumerate(columns)}
        return results | a | b

    def _shaped(self, shape: Shape, body: list[Code]) -> list[Code]:
        """Code for registers of a shape, in a function that has loaded its first shape."""
        name = self.emit.registers.named(shape, self.macros, self.emit.own)
        first = self.emit.registers.first
        return [opened(body)] if name == first else [f"{self.macros}_shape({name});", opened(body), f"{self.macros}_shape({first});"]

    def _loads(self, rows: Sequence[Rows], columns: Sequence[tuple[int, int]]) -> Iterator[str]:
        for i, one in enumerate(rows):
            yield self._load(self.first_a + i, self.form.a, one.first, one.steps[0])
        step = (memory_step(self.form.b, self.form.depth.var) or 0) * BYTES[self.form.b.dtype]
        for j, (start, _) in enumerate(columns):
            yield self._load(self.first_b + j, self.form.b, {**rows[0].first, self.lanes.var: start}, step)

    def _load(self, number: int, access: Access, fixed: dict[Var, int], step: int) -> str:
        return f"{self.macros}_load({number}, &{access.buffer.name}[{self.emit.writer.index(self._place(access, fixed))}], {step});"

    def _begun(self, number: int, rows: Rows, start: int) -> str:
        """A block of results at first: zero, or those of earlier iterations."""
        zero = f"{self.macros}_zero({number});"
        if not self.before:
            return zero
        return f"if ({' && '.join(f'{var.name} == 0' for var in self.before)}) {zero} else {self._moved('load', number, rows, start)}"

    def _moved(self, what: str, number: int, rows: Rows, start: int) -> str:
        place = self.emit.writer.index(self._place(self.store, {**rows.first, self.lanes.var: start}))
        return f"{self.macros}_{what}({number}, &{self.store.buffer.name}[{place}], {rows.steps[1]});"

    def _place(self, access: Access | Store, fixed: dict[Var, int]) -> Linear:
        """The first element of a block."""
        first = {self.form.inner.group: 0, self.form.depth.var: 0, self.lanes.var: 0}
        return self.emit.writer.at({**first, **fixed}, None).flat(access.buffer, access.index)


def _distance(one: Linear, other: Linear) -> int | None:
    """Elements from a place to another; None if that varies."""
    return int(other.const) - int(one.const) if one.terms == other.terms else None


def _match(nest: Nest) -> BlockTile | None:
    inner = inner_product(nest.loops, nest.store)
    if inner is None or inner.intrinsic.block is None or len(nest.loops) < 3:
        return None
    a, b, depth, block = inner.a, inner.b, nest.loops[-3], inner.intrinsic.block
    if depth.kind != "reduce" or int(depth.var.extent) > block.groups:
        return None
    if not isinstance(a, Access) or not isinstance(b, Access) or not _is_stored_in_groups(a, b, depth.var, inner):
        return None
    if not contiguous(nest.store.buffer, nest.store.index, inner.lanes):
        return None
    tile = tile_of(nest.loops[:-1], nest.store, nest.loops[-1:], nest.enclosing, _start(nest.loops[:-1], max(inner.intrinsic.lanes), block))
    if not isinstance(tile, Tile) or any(mentions(guard.value, depth.var) for guard in (*tile.within, *tile.outer)):
        return None
    return BlockTile(tile, inner, a, b, block, depth)


def _is_stored_in_groups(a: Access, b: Access, depth: Var, inner: InnerProduct) -> bool:
    """Whether registers can be loaded with both: groups are adjacent, those of a row one after the other in `a`, and of columns in `b`."""
    size = inner.intrinsic.group
    if (memory_step(a, inner.group), memory_step(a, depth)) != (1, size):
        return False
    return (memory_step(b, inner.group), memory_step(b, inner.lanes)) == (1, size) and memory_step(b, depth) is not None


def _start(loops: Sequence[For], lanes: int, block: Block) -> int:
    """Where the tile begins: lanes and groups, the rows around them, as many as registers hold, and the reductions around those."""
    k, elements, most = len(loops) - 2, int(loops[-1].var.extent), block.held**2 * block.rows * lanes
    while k > 0 and loops[k - 1].kind != "reduce" and elements * int(loops[k - 1].var.extent) <= most:
        k -= 1
        elements *= int(loops[k].var.extent)
    while k > 0 and loops[k - 1].kind == "reduce":
        k -= 1
    return k


BLOCK_TILE = Pattern("block tile", _match)
