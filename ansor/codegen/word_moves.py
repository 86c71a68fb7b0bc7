"""Moves four bytes chosen by a condition, padding or memory, as one number.

Processors without vectors have no register for four bytes: LLVM keeps a choice of them in four registers, and reads and writes each byte for itself.
"""

from __future__ import annotations

from ansor.codegen.dialect import literal
from ansor.codegen.pieces import pieces
from ansor.codegen.values import Writer
from ansor.ir.linear import Linear
from ansor.ir.loops import Access, Buffer, Store
from ansor.te.dtypes import BYTES
from ansor.te.expr import Const, Expr, Select

WORD = 4
"""Bytes."""


def word_move(writer: Writer, store: Store) -> str | None:
    """The C statement for a store of four bytes chosen as a whole, from memory or a constant; None for any other store, and where there is an operating
    system."""
    lanes, value = writer.lanes, store.value
    if writer.helpers.hosted or lanes is None or lanes.count != WORD or store.combiner is not None or BYTES[store.buffer.dtype] != 1:
        return None
    if not isinstance(value, Select) or value.dtype not in ("int8", "uint8") or pieces(value):
        return None
    inner = Writer(writer.helpers, writer.fixed, lanes, safe=writer.safe)  # a guarded read must not be hoisted out of its guard
    condition, mask = inner.value(value.condition)
    then, otherwise = _word(inner, value.then), _word(inner, value.otherwise)
    place = _as_word(inner, store.buffer, store.index, "")
    return None if mask or then is None or otherwise is None or place is None else f"{place} = ({condition} ? {then} : {otherwise});"


def _word(writer: Writer, value: Expr) -> str | None:
    """Four bytes in memory, or four times a constant; None for anything else."""
    if isinstance(value, Const):
        return literal(int.from_bytes(bytes([int(value.value) % 256]) * WORD, "little", signed=True), "int32")
    return _as_word(writer, value.buffer, value.index, "const ") if isinstance(value, Access) else None


def _as_word(writer: Writer, buffer: Buffer, index: tuple[Linear, ...], constant: str) -> str | None:
    """Four adjacent elements of a buffer as one number; None if they are not aligned to four: some processors need that."""
    assert writer.lanes is not None
    lanes, flat = writer.lanes, writer.flat(buffer, index)
    inside = int(flat.coefficient(lanes.var)) == 1 and all(atom is lanes.var or int(c) % WORD == 0 for atom, c in flat.terms)
    if not inside or int(flat.const + lanes.start.const) % WORD:
        return None
    base = Linear(tuple((atom, c) for atom, c in flat.terms if atom is not lanes.var), flat.const) + lanes.start
    return f"*({constant}{writer.helpers.word()} *)&{buffer.name}[{writer.index(base)}]"
