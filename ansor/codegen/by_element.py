"""Loads adjacent elements that a register tile multiplies its vectors by as one vector.

    a0 = A[k][0], a1 = A[k][1], a2 = A[k][2], a3 = A[k][3]        one load each, or
    a = A[k][0:4]                                                  one for all, if instructions can multiply by one element of a vector: a[0], a[1], ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.codegen.chunks import chunks
from ansor.codegen.emitter import Emitter
from ansor.codegen.pieces import pieces
from ansor.codegen.tree import Code
from ansor.codegen.values import Lanes, Writer
from ansor.ir.columns import Int
from ansor.ir.linear import Atom, Linear, Var
from ansor.ir.loops import Access, Buffer, Store
from ansor.te.dtypes import BYTES
from ansor.te.expr import Select
from ansor.te.fold import walk

Place = tuple[dict[Var, int], Lanes | None]
Run = tuple[Buffer, tuple[tuple[Atom, Int], ...]]
"""A buffer, and the terms of a place in it, apart from the constant."""


def elements_together(store: Store, places: Sequence[Place], emit: Emitter, number: int, into: list[Code]) -> dict[str, str]:
    """C text of single elements -> text of the same as elements of vectors, whose loads are written to `into`. Empty if no instruction supports it."""
    if not emit.machine.dialect.by_element or not store.buffer.dtype.startswith("float") or pieces(store.value):
        return {}
    if any(isinstance(node, Select) for node in walk(store.value)):
        return {}  # guarded elements must not be read unconditionally
    found: dict[str, str] = {}
    for (buffer, terms), offsets in _runs(store, places, emit.writer).items():
        for offset, count in _vectors(sorted(offsets), emit.machine.vector_bytes // BYTES[buffer.dtype]):
            kind, name = emit.helpers.vector(buffer.dtype, count), emit.own(f"row{number}_{len(found)}")
            into.append(f"const {kind} {name} = *(const {kind} *)&{_text(emit.writer, buffer, Linear(terms, offset))};")
            found |= {_text(emit.writer, buffer, Linear(terms, offset + k)): f"{name}[{k}]" for k in range(count)}
    return found


def _runs(store: Store, places: Sequence[Place], writer: Writer) -> dict[Run, set[int]]:
    """The places of elements broadcast to all lanes: run -> constant offsets."""
    found: dict[Run, set[int]] = {}
    for fixed, lanes in places:
        if lanes is None:
            continue
        at = writer.at(fixed, None)
        for access in (node for node in walk(store.value) if isinstance(node, Access)):
            flat = at.flat(access.buffer, access.index)
            if flat.coefficient(lanes.var) == 0 and all(isinstance(atom, Var) for atom, _ in flat.terms):
                found.setdefault((access.buffer, flat.terms), set()).add(int(flat.const))
    return found


def _vectors(offsets: Sequence[int], widest: int) -> Iterator[tuple[int, int]]:
    """Adjacent elements as vectors: (offset, elements), at least two."""
    begin = 0
    for k in range(1, len(offsets) + 1):
        if k == len(offsets) or offsets[k] != offsets[k - 1] + 1:
            yield from ((offsets[begin] + offset, count) for offset, count in chunks(k - begin, widest) if count > 1)
            begin = k


def _text(writer: Writer, buffer: Buffer, place: Linear) -> str:
    return f"{buffer.name}[{writer.index(place)}]"
