"""Tells whether two candidates are the same machine code. Different schedules often are, and one measurement serves both.

Read from a relocatable ELF file, of 32 or 64 bits, built with -ffunction-sections: a function is its own bytes plus, for each relocation in
it, its target: another function or constants by content, anything outside by name or its own digest. Constants are compared by
their whole section, which may miss an equality but never invents one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ansor.codegen.elf_file import EXECUTABLE, NO_BITS, SYMBOLS, ElfError, ElfFile, Section, Symbol, rows, text_at

_RELOCATIONS, _RELOCATIONS_IN_PLACE = 4, 9
_THUMB = 1  # in the address of a Thumb function


@dataclass(frozen=True)
class _Layout:
    """`struct` formats of relocations, and by how much a symbol's index is shifted in one."""

    relocation: str
    in_place: str
    index: int


_LAYOUTS = {32: _Layout("<IIi", "<II", 8), 64: _Layout("<QQq", "<QQ", 32)}


class _Relocation(NamedTuple):
    offset: int
    info: int
    addend: int


def code_digests(path: Path, functions: Iterable[str], outside: Mapping[str, str] | None = None) -> dict[str, str]:
    """A digest of each function's machine code; functions that cannot be read (another file format, a damaged file) are missing. outside: digests of
    functions in other files, by name."""
    wanted = set(functions)
    try:
        code = _Object(ElfFile(path.read_bytes()), outside or {})
        return {name: code.digest(symbol.section) for symbol in code.functions if (name := code.name(symbol)) in wanted}
    except (ElfError, RecursionError):  # sections may refer to each other in a longer row than Python can follow
        return {}


class _Object:
    def __init__(self, file: ElfFile, outside: Mapping[str, str]) -> None:
        self._file, self._layout, self._outside, self._sections = file, _LAYOUTS[file.bits], outside, file.sections
        table = next((section for section in self._sections if section.kind == SYMBOLS), None)
        if table is None:
            raise ElfError("it has no symbols")
        self.symbols = file.symbols(table)
        self._names = file.content(file.section(table.link))
        self._relocations = {one.info: one for one in self._sections if one.kind in (_RELOCATIONS, _RELOCATIONS_IN_PLACE)}
        self._digests: dict[int, str] = {}

    @property
    def functions(self) -> Iterator[Symbol]:
        """Symbols at the beginning of a section, as each function has its own."""
        return (one for one in self.symbols if 0 < one.section < len(self._sections) and one.value & ~_THUMB == 0)

    def name(self, symbol: Symbol) -> str:
        return text_at(self._names, symbol.name)

    def digest(self, index: int) -> str:
        """The digest of a section and everything it refers to."""
        if index in self._digests:
            return self._digests[index]
        self._digests[index] = "itself"  # for recursive functions
        section = self._sections[index]
        digest = hashlib.sha256(b"%d:" % (section.flags & EXECUTABLE) + self._bytes(section))
        for relocation in self._relocations_of(index):
            digest.update(self._target(relocation).encode())
        self._digests[index] = digest.hexdigest()
        return self._digests[index]

    def _relocations_of(self, index: int) -> Iterator[_Relocation]:
        section = self._relocations.get(index)
        if section is None:
            return
        if section.kind == _RELOCATIONS:
            yield from (_Relocation(*fields) for fields in rows(self._layout.relocation, self._bytes(section)))
        else:  # the addend is part of the code
            yield from (_Relocation(offset, info, 0) for offset, info in rows(self._layout.in_place, self._bytes(section)))

    def _target(self, relocation: _Relocation) -> str:
        number = relocation.info >> self._layout.index
        if number >= len(self.symbols):
            raise ElfError(f"it refers to symbol {number} of {len(self.symbols)}")
        symbol = self.symbols[number]
        inside = 0 < symbol.section < len(self._sections)
        what = self.digest(symbol.section) if inside else self._outside.get(name := self.name(symbol), name)
        kind = relocation.info & ((1 << self._layout.index) - 1)
        return f"{relocation.offset},{kind},{relocation.addend},{symbol.value},{what};"

    def _bytes(self, section: Section) -> bytes:
        return b"%d" % section.size if section.kind == NO_BITS else self._file.content(section)
