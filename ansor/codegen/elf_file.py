"""Reads ELF files, little-endian, of 32 or 64 bits: sections, symbols, and what is loaded.

Each candidate for a board is read several times. pyelftools takes twelve times as long, up to 90 ms for an image, which is more than its compiler takes; the
tests compare with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

SYMBOLS, NO_BITS = 2, 8
"""Kinds of sections."""
TAKES_MEMORY, EXECUTABLE = 2, 4
"""Flags of sections."""
_LOADED = 1  # kind of a segment


class ElfError(ValueError):
    """The bytes are no such file."""


@dataclass(frozen=True)
class _Layout:
    """`struct` formats. order: the places of `Symbol`'s fields in the format `symbol`; loaded: those of kind, offset, address and size in `segment`."""

    bits: int
    header: str
    section: str
    symbol: str
    order: tuple[int, ...]
    segment: str
    loaded: tuple[int, ...]


_LAYOUTS = {
    b"\x7fELF\x01\x01": _Layout(32, "<HHIIIIIHHHHHH", "<IIIIIIIIII", "<IIIBBH", (0, 3, 4, 5, 1, 2), "<IIIIIIII", (0, 1, 2, 4)),
    b"\x7fELF\x02\x01": _Layout(64, "<HHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", (0, 1, 2, 3, 4, 5), "<IIQQQQQQ", (0, 2, 3, 5)),
}
_START = 16  # of the header's fields


class Section(NamedTuple):
    """The needed fields of a section's header; its name, link and info are numbers."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


class Symbol(NamedTuple):
    """A symbol; its name is a place in the table of names, its section a number."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def kind(self) -> int:
        """What it stands for."""
        return self.info & 15


class ElfFile:
    """An ELF file. Raises ElfError for other bytes."""

    def __init__(self, data: bytes) -> None:
        layout = _LAYOUTS.get(data[:6])
        if layout is None:
            raise ElfError("it is no ELF file")
        self._data, self._layout, self.bits = data, layout, layout.bits
        fields = self._unpacked(layout.header, _START)
        _, self.machine, _, self.entry, self._segments_at, sections_at, self.flags, _, self._segment_bytes, self._segment_count, size, count, names = fields
        self.sections = [Section(*self._unpacked(layout.section, sections_at + number * size)[:8]) for number in range(count)]
        self._titles = self.content(self.sections[names]) if names < count else b""

    def content(self, section: Section) -> bytes:
        """The bytes of a section; none if it has none in the file."""
        return b"" if section.kind == NO_BITS else self._data[section.offset : section.offset + section.size]

    def title(self, section: Section) -> str:
        """The name of a section."""
        return text_at(self._titles, section.name)

    def symbols(self, table: Section) -> list[Symbol]:
        """The symbols of a section of the kind `SYMBOLS`, from the one that stands for none."""
        try:
            return [Symbol(*(fields[place] for place in self._layout.order)) for fields in struct.iter_unpack(self._layout.symbol, self.content(table))]
        except struct.error as error:
            raise ElfError(f"a table of symbols ends early: {error}") from error

    def loaded(self) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each segment that is loaded from the file."""
        for number in range(self._segment_count):
            fields = self._unpacked(self._layout.segment, self._segments_at + number * self._segment_bytes)
            kind, offset, address, size = (fields[place] for place in self._layout.loaded)
            if kind == _LOADED and size:
                yield address, self._data[offset : offset + size]

    def _unpacked(self, form: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(form, self._data, at)
        except (struct.error, OverflowError) as error:
            raise ElfError(f"it ends early: {error}") from error


def text_at(names: bytes, place: int) -> str:
    """A name in a table of names."""
    end = names.find(b"\0", place)
    return names[place : end if end >= 0 else len(names)].decode(errors="replace")
