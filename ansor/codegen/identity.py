"""Tells whether two candidates are the same machine code. Different schedules often are, and one measurement serves both.

Read from a relocatable ELF file, of 32 or 64 bits, built with -ffunction-sections: a function is its own bytes plus, for each relocation in
it, its target: another function or constants by content, anything outside by name. Constants are compared by
their whole section, which may miss an equality but never invents one.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_SYMBOLS, _RELOCATIONS, _NO_BITS, _RELOCATIONS_IN_PLACE, _EXECUTABLE = 2, 4, 8, 9, 4
_THUMB = 1  # in the address of a Thumb function


@dataclass(frozen=True)
class _Layout:
    """The layout of a file: `struct` formats, and where the header locates the sections.

    order: the places of `_Symbol`'s fields in the format `symbol`. index: the shift of a symbol's index in a relocation.
    """

    start: tuple[str, int]
    sections: int
    section: str
    symbol: str
    order: tuple[int, ...]
    relocation: str
    in_place: str
    index: int


_LAYOUTS = {
    b"\x7fELF\x01\x01": _Layout(("<I", 32), 46, "<IIIIIIIIII", "<IIIBBH", (0, 3, 4, 5, 1, 2), "<IIi", "<II", 8),
    b"\x7fELF\x02\x01": _Layout(("<Q", 40), 58, "<IIQQQQIIQQ", "<IBBHQQ", (0, 1, 2, 3, 4, 5), "<QQq", "<QQ", 32),
}
"""Layouts of little-endian files, by their first bytes."""


class _Section(NamedTuple):
    """The needed fields of a section's header."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int

    @classmethod
    def of(cls, header: tuple[int, ...]) -> _Section:
        """From all fields of the header: name, kind, flags, address, offset, size, link, info, align, entry size."""
        _, kind, flags, _, offset, size, link, info, _, _ = header
        return cls(kind, flags, offset, size, link, info)


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Relocation(NamedTuple):
    offset: int
    info: int
    addend: int


def code_digests(path: Path, functions: Iterable[str]) -> dict[str, str]:
    """A digest of each function's machine code; functions that cannot be read (another file format) are missing."""
    data = path.read_bytes()
    layout = _LAYOUTS.get(data[:6])
    if layout is None:
        return {}
    code = _Object(data, layout)
    wanted = set(functions)
    return {
        name: code.digest(symbol.section)
        for symbol in code.symbols
        if symbol.section and symbol.value & ~_THUMB == 0 and (name := code.name(symbol)) in wanted
    }


class _Object:
    def __init__(self, data: bytes, layout: _Layout) -> None:
        self._data, self._layout = data, layout
        (start,) = struct.unpack_from(layout.start[0], data, layout.start[1])
        size, count = struct.unpack_from("<HH", data, layout.sections)
        self._sections = [_Section.of(struct.unpack_from(layout.section, data, start + i * size)) for i in range(count)]
        table = next(section for section in self._sections if section.kind == _SYMBOLS)
        self.symbols = [_Symbol(*(fields[k] for k in layout.order)) for fields in struct.iter_unpack(layout.symbol, self._bytes(table))]
        self._names = self._bytes(self._sections[table.link])
        self._relocations = {one.info: one for one in self._sections if one.kind in (_RELOCATIONS, _RELOCATIONS_IN_PLACE)}
        self._digests: dict[int, str] = {}

    def name(self, symbol: _Symbol) -> str:
        return self._names[symbol.name : self._names.index(b"\0", symbol.name)].decode()

    def digest(self, index: int) -> str:
        """The digest of a section and everything it refers to."""
        if index in self._digests:
            return self._digests[index]
        self._digests[index] = "itself"  # for recursive functions
        section = self._sections[index]
        digest = hashlib.sha256(b"%d:" % (section.flags & _EXECUTABLE) + self._bytes(section))
        for relocation in self._relocations_of(index):
            digest.update(self._target(relocation).encode())
        self._digests[index] = digest.hexdigest()
        return self._digests[index]

    def _relocations_of(self, index: int) -> Iterator[_Relocation]:
        section = self._relocations.get(index)
        if section is None:
            return
        if section.kind == _RELOCATIONS:
            yield from (_Relocation(*fields) for fields in struct.iter_unpack(self._layout.relocation, self._bytes(section)))
        else:  # the addend is part of the code
            yield from (_Relocation(offset, info, 0) for offset, info in struct.iter_unpack(self._layout.in_place, self._bytes(section)))

    def _target(self, relocation: _Relocation) -> str:
        symbol = self.symbols[relocation.info >> self._layout.index]
        inside = 0 < symbol.section < len(self._sections)
        what = self.digest(symbol.section) if inside else self.name(symbol)
        kind = relocation.info & ((1 << self._layout.index) - 1)
        return f"{relocation.offset},{kind},{relocation.addend},{symbol.value},{what};"

    def _bytes(self, section: _Section) -> bytes:
        if section.kind == _NO_BITS:
            return b"%d" % section.size
        return self._data[section.offset : section.offset + section.size]
