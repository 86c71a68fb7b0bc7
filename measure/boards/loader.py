"""Writes a board's memory: keeps a shadow of what was written and sends only what differs from it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from ansor.codegen.image.elf import Segment
from ansor.measure.wire.wire import Summing, Wire, WireError

BLOCK = 64  # bytes that are compared and written together, aligned
SUMMED, REWRITTEN = 16 << 10, 2 << 10  # bytes per checksum, and per piece that is rewritten if it is wrong
GAP = 4  # most blocks from one changed block to the next in one request: another request would cost more


class Loader:
    """The contents of a board's memory that were written from here. Programs change memory too: the caller says which part may have changed."""

    def __init__(self) -> None:
        self._shadow: dict[int, bytes] = {}
        self._doubt = True

    @property
    def fresh(self) -> bool:
        """Whether nothing is known of the memory: the next load writes everything and verifies it, by checksum where the board can."""
        return self._doubt

    def forget(self) -> None:
        """Assume nothing from now on: after a reset, a lost link, or a program that may have written anywhere."""
        self._shadow.clear()
        self._doubt = True

    def changed(self, start: int, end: int) -> None:
        """A program may have written between these addresses."""
        for block in [one for one in self._shadow if start < one + BLOCK and one < end]:
            del self._shadow[block]

    def load(self, wire: Wire, segments: Iterable[Segment]) -> tuple[Segment, ...]:
        """Write what differs and return it. Raises WireError, after which nothing is known."""
        blocks = _blocks(segments)
        try:
            written = tuple(self._runs(blocks))
            if self._doubt and isinstance(wire, Summing):
                written = tuple(part for one in written for part in _wrong(wire, one))
            for one in written:
                wire.write(one.address, one.content)
                if self._doubt and not _is_there(wire, one):
                    raise WireError(f"{wire.name}: memory at {one.address:#x} does not keep written data; is it RAM?")
        except WireError:
            self.forget()
            raise
        self._shadow.update(blocks)
        self._doubt = False
        return written

    def restore(self, wire: Wire, segment: Segment) -> tuple[Segment, ...]:
        """Like `load`, for contents that may still be there: unknown blocks are read, and only those that differ are written."""
        blocks = _blocks([segment])
        try:
            for one in _joined(at for at in sorted(blocks) if at not in self._shadow):
                found = wire.read(one.start, len(one))
                self._shadow.update({at: found[at - one.start : at - one.start + BLOCK] for at in one[::BLOCK]})
        except WireError:
            self.forget()
            raise
        return self.load(wire, [segment])

    def _runs(self, blocks: dict[int, bytes]) -> Iterator[Segment]:
        """Blocks that differ, joined across short gaps."""
        differ = [at for at in sorted(blocks) if self._shadow.get(at) != blocks[at]]
        while differ:
            first = last = differ.pop(0)
            while differ and differ[0] - last <= GAP * BLOCK and all(at in blocks for at in range(last, differ[0], BLOCK)):
                last = differ.pop(0)
            yield Segment(first, b"".join(blocks[at] for at in range(first, last + BLOCK, BLOCK)))


def _joined(blocks: Iterable[int]) -> Iterator[range]:
    """Merge adjacent blocks, given in ascending order."""
    first = last = -1
    for at in blocks:
        if first >= 0 and at != last:
            yield range(first, last)
        first, last = (at if at != last else first), at + BLOCK
    if first >= 0:
        yield range(first, last)


def _wrong(wire: Summing, segment: Segment) -> Iterator[Segment]:
    """The parts of a segment that are not in memory, by the board's own checksums."""
    for part in _pieces(segment, SUMMED):
        if wire.crc(part.address, len(part.content)) != zlib.crc32(part.content):
            yield from (one for one in _pieces(part, REWRITTEN) if wire.crc(one.address, len(one.content)) != zlib.crc32(one.content))


def _is_there(wire: Wire, segment: Segment) -> bool:
    """Whether memory holds what was written."""
    if isinstance(wire, Summing):
        return wire.crc(segment.address, len(segment.content)) == zlib.crc32(segment.content)
    return wire.read(segment.address, len(segment.content)) == segment.content


def _pieces(segment: Segment, size: int) -> Iterator[Segment]:
    for start in range(0, len(segment.content), size):
        yield Segment(segment.address + start, segment.content[start : start + size])


def _blocks(segments: Iterable[Segment]) -> dict[int, bytes]:
    """Segments as whole blocks, padded with zeros. Segments may share a block."""
    made: dict[int, bytearray] = {}
    for one in segments:
        for start in range(one.address & -BLOCK, one.end, BLOCK):
            block = made.setdefault(start, bytearray(BLOCK))
            low, high = max(start, one.address), min(start + BLOCK, one.end)
            block[low - start : high - start] = one.content[low - one.address : high - one.address]
    return {start: bytes(block) for start, block in made.items()}
