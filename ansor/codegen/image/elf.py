"""Memory images of boards: bytes at addresses, and names for some addresses. Reads and writes them as ELF files."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ansor.codegen.elf_file import NO_BITS, SYMBOLS, TAKES_MEMORY, ElfFile, Symbol, reading, text_at

_LOADED = 1  # kind of a segment
_OF_FUNCTION, _OF_SECTION, _OF_FILE = 2, 3, 4  # kinds of symbols
_MARK = re.compile(r"ansor_(parts$|free|end_|\w+_(start|end|low|top)$)")
_NAMED = 0x100  # the most bytes of a named function of the trial program
_CANDIDATE = re.compile(r"^ansor_candidate_[0-9]+")
_SIZES = {"tohost": 8, "fromhost": 8}  # of words through which simulators talk: QEMU takes them only in this size
_FUNCTION_OF = {32: "<IIIBBH", 64: "<IBBHQQ"}


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of memory at an address."""

    address: int
    content: bytes

    @property
    def end(self) -> int:
        """The address after it."""
        return self.address + len(self.content)


@dataclass(frozen=True, slots=True)
class Image:
    """A program in memory. machine, flags: of the ELF header; bits: of an address; symbols: addresses by name."""

    machine: int
    flags: int
    bits: int
    entry: int
    segments: tuple[Segment, ...]
    symbols: Mapping[str, int]

    def joined(self, other: Image) -> Image:
        """Both in one memory, with this one's entry and header."""
        return Image(self.machine, self.flags, self.bits, self.entry, (*self.segments, *other.segments), {**other.symbols, **self.symbols})

    def with_bytes(self, segments: Iterable[Segment]) -> Image:
        """The image with further segments."""
        return Image(self.machine, self.flags, self.bits, self.entry, (*self.segments, *segments), self.symbols)

    def place(self, address: int) -> str:
        """An address for messages: the preceding name, and the distance from it. Linker-defined symbols are not names of code."""
        below = [(at, name) for name, at in self.symbols.items() if at & ~1 <= address and not _MARK.match(name)]
        at, name = max(below, default=(0, ""))
        name = _CANDIDATE.sub("candidate", name)
        if name.startswith("ansor_") and address - (at & ~1) >= _NAMED:  # few of its functions have names here
            return "in the trial program, not in the candidate"
        return f"{name}+{address - (at & ~1):#x}" if name and address - at < 1 << 20 else f"{address:#x}"


def read_image(path: Path) -> Image:
    """The memory that an ELF file describes. Raises ToolchainError for another file."""
    return _read(path, lambda section: True)


def read_parts(path: Path, names: Sequence[str]) -> tuple[Image, ...]:
    """For each of these sections, which may overlap, its memory together with everything in none of them. Raises ToolchainError."""
    return tuple(_read(path, partial(_is_of, name, names)) for name in names)


def _is_of(name: str, names: Sequence[str], section: str) -> bool:
    return section == name or section not in names


def _read(path: Path, wanted: Callable[[str], bool]) -> Image:
    """The memory and symbols of the wanted sections."""
    with reading(path):
        elf = ElfFile(path.read_bytes())
        titles = [elf.title(one) for one in elf.sections]
        # Linkers put the file's header into a segment, so read sections; files of `write_elf` have none.
        taken = [
            Segment(one.address, elf.content(one))
            for one, title in zip(elf.sections, titles, strict=True)
            if one.flags & TAKES_MEMORY and one.kind != NO_BITS and one.size and wanted(title)
        ]
        segments = tuple(taken) or tuple(Segment(*one) for one in elf.loaded())
        symbols = {name: one.value for name, one in _symbols(elf) if _is_place(name, one) and (one.section >= len(titles) or wanted(titles[one.section]))}
    return Image(elf.machine, elf.flags, elf.bits, elf.entry, segments, symbols)


def _symbols(elf: ElfFile) -> Iterator[tuple[str, Symbol]]:
    """All symbols with their names."""
    for table in elf.sections:
        if table.kind == SYMBOLS:
            names = elf.content(elf.section(table.link))
            yield from ((text_at(names, one.name), one) for one in elf.symbols(table))


def _is_place(name: str, one: Symbol) -> bool:
    return name[:1] not in ("", ".", "$") and one.section != 0 and one.kind not in (_OF_SECTION, _OF_FILE)


def function_bytes(path: Path, names: Iterable[str]) -> dict[str, int]:
    """Code bytes of functions in an ELF file, including those with the suffix `_nest`: loops that the compiler did not inline. Raises ToolchainError."""
    found = dict.fromkeys(names, 0)
    with reading(path):
        symbols = list(_symbols(ElfFile(path.read_bytes())))
    for full, one in symbols:
        name = full.split("_nest")[0]
        if name in found and one.kind == _OF_FUNCTION:
            found[name] += one.size
    return found


def write_elf(image: Image, path: Path) -> None:
    """Write a program as an ELF file: segments, and a table of symbols."""
    wide = image.bits == 64
    head, each = (64, 56) if wide else (52, 32)
    offset = head + each * len(image.segments)
    programs, body = b"", b""
    for one in image.segments:
        at, size = offset + len(body), len(one.content)
        if wide:
            programs += struct.pack("<IIQQQQQQ", _LOADED, 7, at, one.address, one.address, size, size, 1)
        else:
            programs += struct.pack("<IIIIIIII", _LOADED, at, one.address, one.address, size, size, 7, 1)
        body += one.content
    body += bytes(-(offset + len(body)) % 8)  # some readers need tables at multiples of 8
    tables, count = _tables(image, offset + len(body))
    body += tables
    sections = offset + len(body) - (count * (64 if wide else 40))
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", 2, image.machine, 1, image.entry, head, sections, image.flags, head, each, len(image.segments),
        64 if wide else 40, count, count - 1,
    )  # fmt: skip
    path.write_bytes(header + programs + body)


def _tables(image: Image, start: int) -> tuple[bytes, int]:
    """Symbols, their names, the names of sections, and the section table; and the number of sections."""
    wide = image.bits == 64
    names, symbols = b"\0", struct.pack(_FUNCTION_OF[image.bits], 0, 0, 0, 0, 0, 0)
    for name, address in image.symbols.items():
        size = _SIZES.get(name, 0)
        fields = (len(names), 0x10, 0, 0xFFF1, address, size) if wide else (len(names), address, size, 0x10, 0, 0xFFF1)
        symbols += struct.pack(_FUNCTION_OF[image.bits], *fields)
        names += name.encode() + b"\0"
    titles = b"\0.symtab\0.strtab\0.shstrtab\0"
    titles += bytes(-(start + len(symbols) + len(names) + len(titles)) % 8)
    kind = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    end = start + len(symbols)
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 2, 0, 0, start, len(symbols), 2, 1, 8, 24 if wide else 16),
        (9, 3, 0, 0, end, len(names), 0, 0, 1, 0),
        (17, 3, 0, 0, end + len(names), len(titles), 0, 0, 1, 0),
    ]
    return symbols + names + titles + b"".join(struct.pack(kind, *row) for row in rows), len(rows)
