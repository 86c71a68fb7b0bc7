"""Reads the stack use of an object's functions, as recorded by the compiler (clang's -fstack-size-section)."""

from __future__ import annotations

from pathlib import Path

from ansor.codegen.elf_file import ElfError, ElfFile, reading

FLAG = "-fstack-size-section"
TOO_LARGE = "a frame larger than the stack"
_SECTION = ".stack_sizes"
_WIDEST = 64  # bits of a size


def frames(path: Path) -> list[int]:
    """Bytes of the stack frames of an object's functions; none if it has no record of them. Raises ToolchainError for a file that cannot be read."""
    with reading(path):
        elf = ElfFile(path.read_bytes())
        return [size for one in elf.sections if elf.title(one) == _SECTION for size in _sizes(elf.content(one), elf.bits // 8)]


def largest_frame(path: Path) -> int:
    """The largest of them; 0 for none."""
    return max(frames(path), default=0)


def misfit(frame: int, stack: int, board: str) -> str:
    """Why functions whose frames have `frame` bytes do not fit on a stack of `stack` bytes; '' if they may."""
    return f"{TOO_LARGE}: a function of the program needs {frame:,} bytes of it at once; {board} has {stack:,}" if frame > stack else ""


def _sizes(notes: bytes, word: int) -> list[int]:
    """Each note is an address, and a number in groups of seven bits, the low ones first."""
    sizes, place = [], word
    while place < len(notes):
        size, shift, more = 0, 0, True
        while more:
            if place >= len(notes) or shift >= _WIDEST:
                raise ElfError(f"the size of a frame at {place} of {len(notes)} bytes has no end")
            size, more = size | (notes[place] & 0x7F) << shift, notes[place] >= 0x80
            place, shift = place + 1, shift + 7
        sizes.append(size)
        place += word
    return sizes
