"""When are two candidates the same machine code? Different schedules often are, and one measurement serves both.

Read from a relocatable ELF file built with -ffunction-sections: a function is its own bytes plus, for each relocation in
it, what that refers to: another function or constants by content, anything outside by name. Constants are compared by
their whole section, which may miss an equality but never invents one.
"""

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SYMBOLS, _RELOCATIONS, _NO_BITS, _EXECUTABLE = 2, 4, 8, 4


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


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
    """A digest of the machine code of each function; functions that cannot be told (no such file format) are missing."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, little endian
        return {}
    code = _Object(data)
    wanted = set(functions)
    return {
        name: code.digest(symbol.section)
        for symbol in code.symbols
        if symbol.section and symbol.value == 0 and (name := code.name(symbol)) in wanted
    }


class _Object:
    def __init__(self, data: bytes) -> None:
        self._data = data
        (start,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        self._sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", data, start + i * size)) for i in range(count)]
        table = next(section for section in self._sections if section.kind == _SYMBOLS)
        self.symbols = [_Symbol(*fields) for fields in struct.iter_unpack("<IBBHQQ", self._bytes(table))]
        self._names = self._bytes(self._sections[table.link])
        self._relocations = {section.info: section for section in self._sections if section.kind == _RELOCATIONS}
        self._digests: dict[int, str] = {}

    def name(self, symbol: _Symbol) -> str:
        return self._names[symbol.name : self._names.index(b"\0", symbol.name)].decode()

    def digest(self, index: int) -> str:
        """Of a section and of everything it refers to."""
        if index in self._digests:
            return self._digests[index]
        self._digests[index] = "itself"  # what a recursive function finds
        section = self._sections[index]
        digest = hashlib.sha256(b"%d:" % (section.flags & _EXECUTABLE) + self._bytes(section))
        relocations = self._relocations.get(index)
        if relocations is not None:
            for fields in struct.iter_unpack("<QQq", self._bytes(relocations)):
                digest.update(self._target(_Relocation(*fields)).encode())
        self._digests[index] = digest.hexdigest()
        return self._digests[index]

    def _target(self, relocation: _Relocation) -> str:
        symbol = self.symbols[relocation.info >> 32]
        inside = 0 < symbol.section < len(self._sections)
        what = self.digest(symbol.section) if inside else self.name(symbol)
        kind = relocation.info & 0xFFFFFFFF
        return f"{relocation.offset},{kind},{relocation.addend},{symbol.value},{what};"

    def _bytes(self, section: _Section) -> bytes:
        if section.kind == _NO_BITS:
            return b"%d" % section.size
        return self._data[section.offset : section.offset + section.size]
