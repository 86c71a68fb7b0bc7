"""ELF files as another reader reads them, and bytes that are none."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ansor.codegen.elf_file import NO_BITS, SYMBOLS, ElfError, ElfFile, text_at
from ansor.codegen.toolchain import compile_files, find_compiler

TEXT = "static int many[4]; int first(int x) { return x + many[x & 3]; } const char *second(void) { many[1] = 2; return \"text\"; }"


@pytest.mark.compiler
@pytest.mark.parametrize("triple", ["x86_64-linux-musl", "arm-linux-musleabihf", "riscv32-linux-musl"])
@pytest.mark.parametrize("linked", [False, True])
def test_sections_symbols_and_segments_are_those_of_another_reader(triple: str, linked: bool, tmp_path: Path) -> None:
    flags = ("-target", triple, "-g0", "-fno-sanitize=all", *(("-shared", "-nostdlib", "-fPIC") if linked else ("-c",)))
    made = compile_files(find_compiler("zig"), [TEXT], tmp_path / "made", flags, libraries=())
    assert made.ok, made.text
    data = (tmp_path / "made").read_bytes()
    mine, other = ElfFile(data), ELFFile(BytesIO(data))
    assert (mine.bits, mine.entry, mine.flags) == (other.elfclass, other.header["e_entry"], other.header["e_flags"])
    found = [(mine.title(one), one.address, one.size, one.flags, b"" if one.kind == NO_BITS else mine.content(one)) for one in mine.sections]
    assert found == [(one.name, one["sh_addr"], one["sh_size"], one["sh_flags"], b"" if one["sh_type"] == "SHT_NOBITS" else one.data())
                     for one in other.iter_sections()]  # fmt: skip
    (table,) = (one for one in mine.sections if one.kind == SYMBOLS)
    names = mine.content(mine.sections[table.link])
    (theirs,) = (one for one in other.iter_sections() if isinstance(one, SymbolTableSection) and one["sh_type"] == "SHT_SYMTAB")
    symbols = [(text_at(names, one.name), one.value, one.size) for one in mine.symbols(table)]
    assert {"first", "second", "many"} <= {name for name, _, _ in symbols}
    assert [one for one in symbols if one[0]] == [(one.name, one["st_value"], one["st_size"]) for one in theirs.iter_symbols() if one.name]
    loaded = [(one["p_vaddr"], one.data()) for one in other.iter_segments() if one["p_type"] == "PT_LOAD" and one["p_filesz"]]
    assert list(mine.loaded()) == loaded and bool(loaded) is linked


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x01\x02\x01" + bytes(60), b"\x7fELF\x01\x01\x01", b"\x7fELF\x02\x01\x01" + b"\xff" * 200])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ElfError):
        ElfFile(data)
