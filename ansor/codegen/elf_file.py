"""Reads ELF files, little-endian, of 32 or 64 bits: sections, symbols, and what is loaded.

Each candidate for a board is read several times. pyelftools takes twelve times as long, up to 90 ms for an image, which is more than its compiler takes; the
tests compare with it. What is damaged is an `ElfError`: tables have to lie in the file, and its parts together may not be larger than it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ansor.errors import ToolchainError

UNUSED, SYMBOLS, NO_BITS = 0, 2, 8
"""Kinds of sections."""
TAKES_MEMORY, EXECUTABLE = 2, 4
"""Flags of sections."""
_LOADED = 1  # kind of a segment


class ElfError(ValueError):
    """The bytes are no such file, or a damaged one."""


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
    """An ELF file. It and its methods raise ElfError for other bytes, and for damaged ones."""

    def __init__(self, data: bytes) -> None:
        layout = _LAYOUTS.get(data[:6])
        if layout is None:
            raise ElfError("it is no ELF file")
        self._data, self._layout, self.bits = data, layout, layout.bits
        fields = self._unpacked(layout.header, _START)
        _, self.machine, _, self.entry, self._segments_at, sections_at, self.flags, _, self._segment_bytes, self._segment_count, size, count, names = fields
        self.sections = [Section(*fields[:8]) for fields in self._table(layout.section, sections_at, size, count)]
        self._check_room([one.size for one in self.sections if one.kind not in (UNUSED, NO_BITS)])
        self._titles = self.content(self.sections[names]) if names < count else b""

    def section(self, number: int) -> Section:
        """The section of this number."""
        if number >= len(self.sections):
            raise ElfError(f"it refers to section {number} of {len(self.sections)}")
        return self.sections[number]

    def content(self, section: Section) -> bytes:
        """The bytes of a section; none if it has none in the file."""
        return b"" if section.kind in (UNUSED, NO_BITS) else self._part(section.offset, section.size)

    def title(self, section: Section) -> str:
        """The name of a section."""
        return text_at(self._titles, section.name)

    def symbols(self, table: Section) -> list[Symbol]:
        """The symbols of a section of the kind `SYMBOLS`, from the one that stands for none."""
        return [Symbol(*(fields[place] for place in self._layout.order)) for fields in rows(self._layout.symbol, self.content(table))]

    def loaded(self) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each segment that is loaded from the file."""
        table = self._table(self._layout.segment, self._segments_at, self._segment_bytes, self._segment_count)
        parts = [[fields[place] for place in self._layout.loaded] for fields in table]
        taken = [(offset, address, size) for kind, offset, address, size in parts if kind == _LOADED and size]
        self._check_room([size for _, _, size in taken])
        for offset, address, size in taken:
            yield address, self._part(offset, size)

    def _table(self, form: str, at: int, step: int, count: int) -> list[tuple[int, ...]]:
        if count and step < struct.calcsize(form):
            raise ElfError(f"the rows of a table have {step} bytes, not {struct.calcsize(form)}")
        return [self._unpacked(form, at + number * step) for number in range(count)]

    def _unpacked(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack(form, self._part(at, struct.calcsize(form)))

    def _part(self, at: int, size: int) -> bytes:
        if at + size > len(self._data):
            raise ElfError(f"it ends early, after {len(self._data)} bytes of {at + size}")
        return self._data[at : at + size]

    def _check_room(self, sizes: Sequence[int]) -> None:
        """Damaged sizes that each fit into the file may together be more than fits into memory."""
        if sum(sizes) > len(self._data):
            raise ElfError(f"its parts have {sum(sizes)} bytes, and the whole {len(self._data)}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns ElfErrors about a file into ToolchainErrors that name it."""
    try:
        yield
    except ElfError as error:
        raise ToolchainError(f"asked to read {path}, which is no ELF file, or a damaged one: {error}; build it again") from error


def rows(form: str, content: bytes) -> Iterator[tuple[int, ...]]:
    """The rows of a table. Raises ElfError if the last one is incomplete."""
    if len(content) % struct.calcsize(form):
        raise ElfError(f"a table of {len(content)} bytes has rows of {struct.calcsize(form)}")
    return struct.iter_unpack(form, content)


def text_at(names: bytes, place: int) -> str:
    """A name in a table of names; no name in an empty table. Raises ElfError if it does not end there."""
    if not names:
        return ""
    end = names.find(b"\0", place)
    if end < 0:
        raise ElfError(f"a name at {place} has no end in the {len(names)} bytes of names")
    return names[place:end].decode(errors="replace")
