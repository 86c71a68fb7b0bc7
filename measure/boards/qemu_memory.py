"""Checks, before any program runs, that QEMU's machine has the memories of a board's file, as its monitor lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.codegen.image.board import Board, Memory
from ansor.errors import DeviceError
from ansor.measure.boards.smoke import refuse

ASKED = "info mtree -f\nquit\n"
"""Commands for the monitor."""

SECONDS = 10.0
_REPLACED = ("-monitor", "-serial")
_REGION = re.compile(r"\b([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, (?:(ram|rom|romd)\)|i/o\): tz-mpc-upstream)")
"""A memory in the monitor's list. Memory behind a TrustZone controller counts, although the monitor calls it i/o."""


@dataclass(frozen=True, slots=True)
class Region:
    """The addresses of a memory: the first, and the one after the last. written: it is writable."""

    start: int
    end: int
    written: bool


def monitor_command(words: Sequence[str]) -> list[str]:
    """A board's command, changed to start its machine halted, without a program, with the monitor on standard input and output."""
    kept: list[str] = []
    skip = False
    for word, after in zip(words, (*words[1:], ""), strict=True):
        if not skip and (word in _REPLACED or "IMAGE" in after):
            skip = True
            continue
        if not skip:
            kept.append(word)
        skip = False
    return [*kept, "-serial", "null", "-monitor", "stdio", "-S"]


def regions_in(text: str) -> list[Region]:
    """The memories that the monitor names, in order; adjacent ones of a kind are merged."""
    found: list[Region] = []
    for start, last, kind in sorted({(int(one[1], 16), int(one[2], 16), one[3] or "ram") for one in _REGION.finditer(text)}):
        here = Region(start, last + 1, kind == "ram")
        if found and found[-1].end >= start and found[-1].written == here.written:
            here = Region(found[-1].start, max(found.pop().end, here.end), here.written)
        found.append(here)
    return found


def check_regions(board: Board, regions: Sequence[Region]) -> None:
    """Raises DeviceError if the machine lacks a memory of the file or has it differently. Checks nothing if the monitor named none."""
    for mistake in (_mistake(board, memory, regions) for memory in board.memories if regions):
        if mistake is not None:
            raise mistake


def _mistake(board: Board, memory: Memory, regions: Sequence[Region]) -> DeviceError | None:
    program, span = board.run.command[0], f"its memory {memory.name!r} is {memory.start:#x} to {memory.end:#x}"
    here = next((one for one in regions if one.start <= memory.start < one.end), None)
    if here is None:
        has = ", ".join(_words(regions))
        what = f"{span}, but {program} has no memory at {memory.start:#x}; it has {has}"
        return refuse(board, what, f"start of the memory {memory.name!r} under memories, and run.command")
    if here.end < memory.end and all(one.start != here.end for one in regions):
        what = f"{span}, but the memory of {program} there ends at {here.end:#x}"
        return refuse(board, what, f"size of the memory {memory.name!r} under memories, and run.command")
    if not here.written and not memory.flash:
        return refuse(board, f"{span}, but in {program} this memory is read-only", f"flash of the memory {memory.name!r} under memories")
    return None


def _words(regions: Sequence[Region]) -> Iterator[str]:
    return (f"{one.start:#x} to {one.end:#x}{'' if one.written else ' (read only)'}" for one in regions[:8])
