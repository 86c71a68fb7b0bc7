"""How much memory is behind a wire."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ansor.measure.boards.extent import GRAIN, REGION, Extent, extent_of
from ansor.measure.wire.wire import WireError
from tests.testing.memory_wire import Board, MemoryWire


@dataclass
class Memory(MemoryWire):
    """Memory of some size at some address, which begins anew behind its end or not. touched: where something was written."""

    start: int = 0
    size: int = 0
    anew: bool = False
    touched: set[int] = field(default_factory=set)

    def read(self, address: int, size: int) -> bytes:
        at = self._place(address, size)
        return bytes(self.board.memory[at : at + size])

    def write(self, address: int, data: bytes) -> None:
        at = self._place(address, len(data))
        self.touched.update(range(address, address + len(data)))
        self.board.memory[at : at + len(data)] = data

    def _place(self, address: int, size: int) -> int:
        if self.closed.is_set() or address < self.start or not self.anew and address + size > self.start + self.size:
            raise WireError(f"nothing at {address:#x}")
        return (address - self.start) % self.size


def memory(size: int, start: int = 0x2000_0000, anew: bool = False) -> Memory:
    return Memory(Board(bytearray(range(256)) * (size // 256)), start=start, size=size, anew=anew)


@pytest.mark.parametrize("kilobytes", [1, 2, 3, 20, 64, 100, 1024])
def test_it_is_found_to_the_kilobyte_and_stays_as_it_was(kilobytes: int) -> None:
    wire = memory(kilobytes * GRAIN)
    assert extent_of(wire, wire.start) == Extent(kilobytes * GRAIN)
    assert wire.board.memory == bytes(range(256)) * (4 * kilobytes) and max(wire.touched) < wire.start + 16


def test_memory_that_begins_anew_is_told_from_more_of_it() -> None:
    assert extent_of(memory(64 * GRAIN, anew=True), 0x2000_0000) == Extent(64 * GRAIN, anew=True)


def test_nothing_is_read_in_the_next_block_of_addresses() -> None:
    wire = memory(1024 * GRAIN, start=REGION - 64 * GRAIN)
    assert extent_of(wire, wire.start) == Extent(64 * GRAIN, open=True)


def test_a_wire_that_breaks_is_no_end_of_memory() -> None:
    wire = memory(64 * GRAIN)
    wire.closed.set()
    with pytest.raises(WireError):
        extent_of(wire, wire.start)
