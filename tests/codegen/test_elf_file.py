"""ELF files as another reader reads them, and bytes that are none."""

from __future__ import annotations

import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as some

from ansor.codegen.elf_file import NO_BITS, SYMBOLS, ElfError, ElfFile, text_at
from ansor.codegen.identity import code_digests
from ansor.codegen.image.elf import Image, Segment, function_bytes, read_image, write_elf
from ansor.codegen.image.frames import frames
from ansor.codegen.toolchain import compile_files, find_compiler
from ansor.errors import ToolchainError

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


FLAGS = ("-O1", "-g0", "-c", "-ffunction-sections", "-fstack-size-section", "-fno-sanitize=all")
CALLS = "float outside(float x); static float own(float x) { return outside(x) + 1; } float first(float x) { return own(x) * own(x + 2); }"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Objects of several processors, and the image of a board."""
    folder = tmp_path_factory.mktemp("objects")
    for triple in ("x86_64-linux-musl", "arm-linux-musleabihf", "riscv32-linux-musl"):
        made = compile_files(find_compiler("zig"), [CALLS], folder / triple, ("-target", triple, *FLAGS))
        assert made.ok, made.text
    write_elf(Image(243, 5, 32, 16, (Segment(16, bytes(range(200))), Segment(4096, b"more")), {"start": 16, "table": 4096}), folder / "image")
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def read_whole(data: bytes, folder: Path) -> None:
    """By everything that reads such files."""
    elf = ElfFile(data)
    for one in elf.sections:
        elf.title(one), elf.content(one)
    list(elf.loaded())
    path = folder / "damaged"
    path.write_bytes(data)
    read_image(path), frames(path), function_bytes(path, ["first"])


def damaged(draw: Callable[..., int], data: bytes) -> bytes:
    """With a few bytes changed, most of them in the header or in the tables behind the contents."""
    found = bytearray(data)
    for _ in range(draw(some.integers(1, 6))):
        place = draw(some.one_of(some.integers(0, 63), some.integers(len(data) // 2, len(data) - 1), some.integers(0, len(data) - 1)))
        found[place] = draw(some.one_of(some.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), some.integers(0, 255)))
    return bytes(found)


@pytest.mark.compiler
@given(data=some.data())
@settings(max_examples=400)
def test_damage_is_told_or_does_not_matter(files: list[bytes], data: some.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    content = damaged(data.draw, files[data.draw(some.integers(0, len(files) - 1))])
    try:
        read_whole(content, folder)
    except (ElfError, ToolchainError) as error:
        assert str(error)
    (folder / "object").write_bytes(content)
    assert set(code_digests(folder / "object", ["first"])) <= {"first"}


@pytest.mark.compiler
@given(data=some.data())
def test_a_part_of_a_file_is_refused(files: list[bytes], data: some.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = files[data.draw(some.integers(0, len(files) - 1))]
    read_whole(content, tmp_path_factory.getbasetemp())
    part = content[: data.draw(some.integers(0, len(content) - 1))]
    with pytest.raises((ElfError, ToolchainError)):
        read_whole(part, tmp_path_factory.getbasetemp())
    path = tmp_path_factory.getbasetemp() / "part"
    path.write_bytes(part)
    assert code_digests(path, ["first"]) == {}


def header(sections: int, each: int) -> bytes:
    """Of a file of 64 bits with this many sections, whose headers of `each` bytes follow."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, 64, 0, 64, 0, 0, each, sections, 0)


@pytest.mark.parametrize("each", [0, 64])
def test_sections_that_share_their_bytes_do_not_fill_the_memory(each: int) -> None:
    section = struct.pack("<IIQQQQIIQQ", 0, 1, 2, 0, 0, 64 * 1000, 0, 0, 1, 0)
    with pytest.raises(ElfError, match="the rows of a table|its parts have"):
        ElfFile(header(1000, each) + section * 1000)


def test_a_file_without_symbols_has_no_digests(tmp_path: Path) -> None:
    (tmp_path / "object").write_bytes(header(0, 64))
    assert code_digests(tmp_path / "object", ["first"]) == {}


def test_functions_that_call_each_other_in_a_long_row_have_no_digest(tmp_path: Path) -> None:
    long = 2000
    symbols = b"".join(struct.pack("<IBBHQQ", 1 if number == 1 else 0, 2, 0, number, 0, 0) for number in range(long + 1))
    relocations = [struct.pack("<QQq", 0, number + 1 << 32, 0) for number in range(1, long)]
    parts = [(1, b"")] * long + [(2, symbols), (3, b"\0first\0"), *((4, one) for one in relocations)]
    at, rows, contents = 64 + 64 * (len(parts) + 1), [bytes(64)], b""
    for number, (kind, content) in enumerate(parts):
        target = number - long - 1 if kind == 4 else 0
        rows.append(struct.pack("<IIQQQQIIQQ", 0, kind, 4, 0, at + len(contents), len(content), long + 2 if kind == 2 else 0, target, 1, 0))
        contents += content
    (tmp_path / "object").write_bytes(header(len(rows), 64) + b"".join(rows) + contents)
    assert code_digests(tmp_path / "object", ["first"]) == {}
