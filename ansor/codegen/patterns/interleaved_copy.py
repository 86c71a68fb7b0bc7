"""Copies bytes into groups, and bfloat16 into pairs: rows of a matrix, read a vector at a time, are interleaved in registers.

    for l, q:  packed[l, q] = b[q, l]          a, b, c, d: rows   ->   a[0] b[0] c[0] d[0] a[1] b[1] c[1] d[1] ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.codegen.emitter import Emitter
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.patterns.row import row_of
from ansor.codegen.tensorized import interleaved_function, memory_step
from ansor.codegen.tree import Code, block
from ansor.codegen.values import Writer, flat_index
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Store
from ansor.ir.simplify import conjuncts, index_of
from ansor.support.bfloat16 import BFLOAT16
from ansor.te.dtypes import BYTES
from ansor.te.expr import Binary, Const, Expr, Select

MAX_LANES = 512  # a longer one is not a packed tile


@dataclass(frozen=True, eq=False)
class InterleavedCopy:
    """The two innermost loops around a copy as vectors: valid if all `tests` hold for their last iterations, as they then hold for all."""

    around: tuple[For, ...]
    lanes: For
    group: For
    store: Store
    access: Access
    tests: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.store.buffer.name}: {self.access.buffer.name} interleaved in groups of {self.group.var.extent}"

    def code(self, emit: Emitter) -> list[Code]:
        lanes, group = self.lanes.var, self.group.var
        last = emit.writer.at({lanes: int(lanes.extent) - 1, group: int(group.extent) - 1}, None)
        condition = " && ".join(last.scalar(test) for test in self.tests)
        lines = _lines(self.store, self.access, lanes, group, emit.writer, emit.machine.vector_bytes)
        if not condition:
            return lines
        return [block(f"if ({condition})", lines), block("else", emit.loop(self.lanes, row_of([self.group], self.store).code(emit)))]


def _match(nest: Nest) -> InterleavedCopy | None:
    """A copy that reads contiguously along the lanes (the loop before the last) and writes groups (the last loop)."""
    loops, store = nest.loops, nest.store
    if len(loops) < 2 or store.combiner is not None or store.guards:
        return None
    lanes, group = loops[-2].var, loops[-1].var
    size, count = int(group.extent), int(lanes.extent)
    if BYTES[store.buffer.dtype] != 1 and (store.buffer.dtype, size) != (BFLOAT16, 2):
        return None
    access = store.value.then if isinstance(store.value, Select) else store.value
    if size not in (2, 4, 8) or count > MAX_LANES or not isinstance(access, Access) or access.dtype != store.buffer.dtype:
        return None
    written = Access(store.buffer, store.index, store.buffer.dtype)
    if (memory_step(written, lanes), memory_step(written, group)) != (size, 1) or memory_step(access, lanes) != 1 or memory_step(access, group) is None:
        return None
    tests = conjuncts(store.value.condition) if isinstance(store.value, Select) else []
    if not all(_grows(test, (lanes, group)) for test in tests):
        return None
    return InterleavedCopy(loops[:-2], loops[-2], loops[-1], store, access, tuple(tests))


INTERLEAVED_COPY = Pattern("interleaved copy", _match)


def _grows(test: Expr, variables: Sequence[Var]) -> bool:
    """Whether the test is `index < number` with an index that never decreases with the variables."""
    if not isinstance(test, Binary) or test.op != "lt" or not isinstance(test.right, Const):
        return False
    index = index_of(test.left)
    return index is not None and all(isinstance(atom, Var) and (int(c) >= 0 or atom not in variables) for atom, c in index.terms)


def _lines(store: Store, access: Access, lanes: Var, group: Var, writer: Writer, vector_bytes: int) -> list[Code]:
    helpers, dtype, size = writer.helpers, store.buffer.dtype, int(group.extent)
    lines: list[Code] = []
    start, count = 0, vector_bytes // BYTES[dtype]
    while start < int(lanes.extent):
        while count > int(lanes.extent) - start:
            count //= 2
        rows = []
        for k in range(size):
            place = f"{access.buffer.name}[{_index(access, {lanes: start, group: k}, writer)}]"
            rows.append(f"*(const {helpers.vector(dtype, count)} *)&{place}" if count > 1 else place)
        to = f"{store.buffer.name}[{_index(Access(store.buffer, store.index, dtype), {lanes: start, group: 0}, writer)}]"
        kind = helpers.vector(dtype, count * size)
        value = f"{interleaved_function(helpers, dtype, count, size)}({', '.join(rows)})" if count > 1 else f"({kind}){{{', '.join(rows)}}}"
        lines.append(f"*({kind} *)&{to} = {value};")
        start += count
    return lines


def _index(access: Access, fixed: dict[Var, int], writer: Writer) -> str:
    at = writer.at(fixed, None)
    flat: Linear = flat_index(access.buffer, access.index)
    return at.index(at.resolved(flat))
