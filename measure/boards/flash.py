"""Writes code to a board's flash. Flash wears out, so a block is read before it is written, and written only if it differs.

    read unknown blocks ── erase and write those that differ ── read them back ── known

Blocks are written whole, with the rest of their contents preserved. Nothing outside the memory for code is erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Segment
from ansor.errors import DeviceError
from ansor.measure.boards.smoke import refuse
from ansor.measure.wire.wire import FlashError, Flashing, FlashRegion, Wire, WireError

MOST_FAILED = 2  # failed writes in a row that raise an error


def refuse_flash(board: Board, name: str) -> DeviceError:
    """The error of a wire that cannot write flash."""
    why = "their code is in flash memory, which only a wire through a GDB server (gdb://HOST:PORT) can write"
    return DeviceError(f"asked to run programs for {board.name} over {name}: {why}; use -code=ram")


def parts_of(segments: Iterable[Segment], board: Board) -> tuple[list[Segment], list[Segment]]:
    """The parts of an image that a wire writes: to RAM, and to the flash for code. It skips vectors in flash beside the code: only simulators need them."""
    segments, code = list(segments), board.code
    ram = [one for one in segments if not board.keeps(one.address)]
    return ram, [one for one in segments if code.flash and code.start <= one.address < code.end]


class FlashLoader:
    """The known contents of a board's memory for code: blocks that were read since the last `forget`. Programs do not change them."""

    def __init__(self, board: Board) -> None:
        self._board, self._memory = board, board.code
        self._known: dict[int, bytes] = {}
        self._failed = 0

    def forget(self) -> None:
        """Assume nothing from now on: the next load reads before it writes."""
        self._known.clear()

    def check(self, wire: Wire) -> None:
        """Raises DeviceError if the wire cannot write the memory for code that the board's file describes, WireError if the wire broke."""
        if not isinstance(wire, Flashing):
            raise refuse_flash(self._board, wire.name)
        regions, memory, at = wire.flash(), self._memory, self._memory.start
        if not regions:
            why = "their code is in flash memory, but the GDB server reports no writable flash (QEMU's never does)"
            raise DeviceError(f"asked to run programs for {self._board.name} over {wire.name}: {why}; use -code=ram")
        for one in regions:
            at = one.end if one.start <= at < one.end else at
        span = f"its memory {memory.name!r}, {memory.start:#x} to {memory.end:#x},"
        if at == memory.start:
            there = ", ".join(f"{one.start:#x} to {one.end:#x}" for one in regions[:4])
            raise refuse(self._board, f"{span} is for code, and {wire.name} reports no flash there, but {there}", f"{self._fields}, or use -code=ram")
        if at < memory.end:
            raise refuse(self._board, f"{span} is larger than the flash that {wire.name} reports, which ends at {at:#x}", f"size of {self._fields}")
        self._block_at(wire, regions, memory.start)

    def load(self, wire: Wire, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """Write the blocks that differ, and return them. If there are any, other memory of the board may have changed.

        Raises DeviceError for blocks outside the memory for code, or flash that cannot be written, WireError if the wire broke: then nothing is known."""
        if not segments:
            return ()
        if not isinstance(wire, Flashing):
            raise refuse_flash(self._board, wire.name)
        try:
            return self._loaded(wire, wire, segments)
        except FlashError as error:
            self.forget()
            self._failed += 1
            if self._failed >= MOST_FAILED:
                why = f"{error}; it was tried {self._failed} times; is the flash write-protected or worn out?"
                raise DeviceError(f"asked to write the code of {self._board.name} to its flash: {why}") from None
            raise
        except WireError:
            self.forget()
            raise

    def _loaded(self, wire: Wire, flashing: Flashing, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        wanted = dict[int, bytes]()
        for start, size in self._blocks(wire, flashing.flash(), segments):
            if start not in self._known:
                self._known[start] = wire.read(start, size)
            wanted[start] = _overlaid(Segment(start, self._known[start]), segments)
        parts = tuple(_joined(Segment(start, content) for start, content in sorted(wanted.items()) if content != self._known[start]))
        if not parts:
            return ()
        flashing.program([(one.address, one.content) for one in parts])
        for one in parts:
            if (found := wire.read(one.address, len(one.content))) != one.content:
                at = next(k for k in range(len(found)) if found[k] != one.content[k])
                said = f"{one.content[at]:#04x} was written at {one.address + at:#x}, and {found[at]:#04x} was read back"
                raise FlashError(f"{wire.name}: flash does not keep written data: {said}")
        self._known |= wanted
        self._failed = 0
        return parts

    def _blocks(self, wire: Wire, regions: Sequence[FlashRegion], segments: Sequence[Segment]) -> Iterator[tuple[int, int]]:
        """Start and size of each block that the segments touch, once."""
        done = set[int]()
        for one in segments:
            at = one.address
            while at < one.end:
                start, size = self._block_at(wire, regions, at)
                if start not in done:
                    done.add(start)
                    yield start, size
                at = start + size

    def _block_at(self, wire: Wire, regions: Sequence[FlashRegion], address: int) -> tuple[int, int]:
        """Start and size of the block at an address. Raises DeviceError if it is not within the memory for code."""
        memory = self._memory
        region = next((one for one in regions if one.start <= address < one.end), None)
        if region is None:
            raise refuse(self._board, f"{wire.name} reports no flash at {address:#x}, where code would be", self._fields)
        start = address - (address - region.start) % region.block
        if start < memory.start or start + region.block > memory.end:
            block = f"the block of flash from {start:#x} to {start + region.block:#x}"
            what = f"{block} reaches beyond its memory {memory.name!r}, {memory.start:#x} to {memory.end:#x}, and can only be erased as a whole"
            raise refuse(self._board, what, f"start and size of {self._fields}, or use -code=ram")
        return start, region.block

    @property
    def _fields(self) -> str:
        return f"the memory {self._memory.name!r} under memories"


def _overlaid(block: Segment, segments: Sequence[Segment]) -> bytes:
    """A block's contents, with the segments written over it."""
    made = bytearray(block.content)
    for one in segments:
        low, high = max(block.address, one.address), min(block.end, one.end)
        if low < high:
            made[low - block.address : high - block.address] = one.content[low - one.address : high - one.address]
    return bytes(made)


def _joined(blocks: Iterable[Segment]) -> list[Segment]:
    """Merge adjacent blocks."""
    made = list[Segment]()
    for one in blocks:
        if made and made[-1].end == one.address:
            one = Segment(made[-1].address, made.pop().content + one.content)
        made.append(one)
    return made
