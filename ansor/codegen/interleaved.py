"""Copies of bytes into groups: rows of a matrix, read a vector at a time, are interleaved in registers.

    for l, q:  packed[l, q] = b[q, l]          a, b, c, d: rows   ->   a[0] b[0] c[0] d[0] a[1] b[1] c[1] d[1] ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.codegen.dialect import BYTES
from ansor.codegen.tensorized import interleaved_function, memory_step
from ansor.codegen.values import Writer, flat_index
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Store
from ansor.ir.simplify import conjuncts, index_of
from ansor.te.expr import Binary, Const, Expr, Select

MAX_LANES = 512  # what is longer is no tile that was packed


@dataclass(frozen=True)
class Interleaving:
    """The two innermost loops around a copy as vectors: right where `condition` holds, which is C text, '' for everywhere."""

    condition: str
    lines: list[str]


def interleaving(loops: Sequence[For], store: Store, writer: Writer, vector_bytes: int) -> Interleaving | None:
    """How a copy is written that reads neighbours along the lanes (the loop before the last) and writes groups (the last loop); None for any other store."""
    if len(loops) < 2 or store.combiner is not None or store.guards or BYTES[store.buffer.dtype] != 1:
        return None
    lanes, group = loops[-2].var, loops[-1].var
    size, count = int(group.extent), int(lanes.extent)
    access = store.value.then if isinstance(store.value, Select) else store.value
    if size not in (2, 4) or count > MAX_LANES or not isinstance(access, Access) or access.dtype != store.buffer.dtype:
        return None
    written = Access(store.buffer, store.index, store.buffer.dtype)
    if (memory_step(written, lanes), memory_step(written, group)) != (size, 1) or memory_step(access, lanes) != 1 or memory_step(access, group) is None:
        return None
    tests = conjuncts(store.value.condition) if isinstance(store.value, Select) else []
    if not all(_grows(test, (lanes, group)) for test in tests):
        return None
    last = writer.at({lanes: count - 1, group: size - 1}, None)  # where all tests hold there, they hold before
    condition = " && ".join(last.scalar(test) for test in tests)
    return Interleaving(condition, _lines(store, access, lanes, group, writer, vector_bytes))


def _grows(test: Expr, variables: Sequence[Var]) -> bool:
    """True for `index < number` with an index that grows with each of the variables, or does not change with them."""
    if not isinstance(test, Binary) or test.op != "lt" or not isinstance(test.right, Const):
        return False
    index = index_of(test.left)
    return index is not None and all(isinstance(atom, Var) and (int(c) >= 0 or atom not in variables) for atom, c in index.terms)


def _lines(store: Store, access: Access, lanes: Var, group: Var, writer: Writer, vector_bytes: int) -> list[str]:
    helpers, dtype, size = writer.helpers, store.buffer.dtype, int(group.extent)
    lines, start, count = [], 0, vector_bytes
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
