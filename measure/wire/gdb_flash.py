"""Flash memory behind a GDB server: the memory map that describes it, and the packets that erase and write it.

The format and the packets are described in "Debugging with GDB", appendix "Remote Protocol": erasing takes whole blocks, writes come by ascending addresses
and do not overlap, and `vFlashDone` ends a group. Servers may do all the work when that arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ansor.measure.wire.gdb_packets import escaped
from ansor.measure.wire.gdb_registers import ATTRIBUTE
from ansor.measure.wire.gdb_server import Refused, Server
from ansor.measure.wire.wire import FlashRegion, WireError

MOST = 4096
"""The most regions of a memory map."""
ADDRESSES = 1 << 64
PIECE = 64
"""Writes are multiples of this: some flash is written in words of up to 32 bytes."""
SECONDS, BLOCK_SECONDS, SLOWEST = 30.0, 8.0, 2048
"""Time for any request; time for each block to erase (data sheets say up to 4 s); the lowest rate of writing, in bytes per second."""

_TAG = re.compile(r"<(/?)(memory-map|memory|property)\b([^<>]*?)(/?)>([^<>]*)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}")


def read_flash(server: Server) -> tuple[FlashRegion, ...]:
    """The flash that a server knows of; empty if it has no memory map. Raises Refused for a map that makes no sense."""
    if server.features.memory_map and not server.flash and (text := server.file("memory-map")):
        try:
            server.flash = flash_regions(text)
        except WireError as error:
            raise Refused(str(error)) from None
    return server.flash


def flash_regions(text: str) -> tuple[FlashRegion, ...]:
    """The flash of a memory map, by address. Raises WireError."""
    found = sorted(_regions(_COMMENT.sub("", text)), key=lambda one: one.start)
    for before, after in pairwise(found):
        if after.start < before.end:
            raise WireError(f"the GDB server's memory map has overlapping regions of flash, at {before.start:#x} and at {after.start:#x}")
    return tuple(found)


def program(server: Server, parts: Sequence[tuple[int, bytes]]) -> None:
    """Erase and write whole blocks. Raises Refused, after which the server may hold part of them, or WireError."""
    _check_blocks(read_flash(server), parts)
    for start, size, blocks in _spans(server.flash, parts):
        what = f"{size} bytes of flash at {start:#x} cannot be erased"
        server.carry_out(b"vFlashErase:%x,%x" % (start, size), what, SECONDS + BLOCK_SECONDS * blocks)
    step = max(server.chunk // PIECE * PIECE, 4)
    for start, content in parts:
        for at in range(0, len(content), step):
            piece = content[at : at + step]
            what = f"{len(piece)} bytes of flash at {start + at:#x} cannot be written"
            server.carry_out(b"vFlashWrite:%x:%b" % (start + at, escaped(piece)), what, SECONDS)
    total = sum(len(content) for _, content in parts)
    server.carry_out(b"vFlashDone", f"{total} bytes of flash from {parts[0][0]:#x} on cannot be written", SECONDS + total / SLOWEST)


def _check_blocks(regions: Sequence[FlashRegion], parts: Sequence[tuple[int, bytes]]) -> None:
    """Raises Refused for parts that are not whole blocks in order: nothing has been sent by then."""
    last = 0
    for start, content in parts:
        if not content or start < last or any(not _is_border(regions, at) for at in (start, start + len(content))):
            raise Refused(f"asked to write {len(content)} bytes of flash at {start:#x}, which are not whole blocks of the flash that the GDB server reports")
        last = start + len(content)


def _is_border(regions: Sequence[FlashRegion], address: int) -> bool:
    return any(one.start <= address <= one.end and (address - one.start) % one.block == 0 for one in regions)


def _spans(regions: Sequence[FlashRegion], parts: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, int, int]]:
    """Start, size and number of blocks of each range that is erased at once: the parts, split where regions meet."""
    for start, content in parts:
        for one in regions:
            low, high = max(start, one.start), min(start + len(content), one.end)
            if low < high:
                yield low, high - low, (high - low) // one.block


def _regions(text: str) -> Iterator[FlashRegion]:
    """The flash regions of a memory map, in its order. Raises WireError."""
    tags = _TAG.findall(text)
    if not tags or tags[0][1] != "memory-map" or tags[-1][:2] != ("/", "memory-map"):
        raise WireError(f"the GDB server's memory map is malformed or cut off: it has {len(text)} characters and ends in {text[-40:]!r}")
    if len(tags) > 4 * MOST:
        raise WireError(f"the GDB server's memory map has more than {MOST} regions")
    memory, block = dict[str, str](), ""
    for closes, name, inside, empty, after in tags:
        values = dict(ATTRIBUTE.findall(inside))
        if name == "memory" and not closes:
            memory, block = values, ""
        elif name == "property" and not closes and values.get("name") == "blocksize":
            block = after.strip()
        if name == "memory" and (closes or empty) and memory.get("type") == "flash":
            yield _region(memory, block)


def _region(memory: dict[str, str], block: str) -> FlashRegion:
    texts = (memory.get("start", ""), memory.get("length", ""), block)
    if not all(_NUMBER.fullmatch(one.strip()) for one in texts):
        said = ", ".join(f"{name} {text[:40]!r}" for name, text in zip(("start", "length", "blocksize"), texts, strict=True))
        raise WireError(f"the GDB server's memory map has flash without a valid start, length or block size: {said}")
    start, size, each = (int(one, 16 if one.strip()[:2].lower() == "0x" else 10) for one in texts)
    if not 0 < each <= size or size % each or start + size > ADDRESSES:
        raise WireError(f"the GDB server's memory map has flash at {start:#x} of {size} bytes in blocks of {each} bytes, which is impossible")
    return FlashRegion(start, size, each)
