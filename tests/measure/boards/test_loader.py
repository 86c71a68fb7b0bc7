"""What goes over a wire, and what does not: against a memory that is an array."""

from __future__ import annotations

import random
import zlib

import pytest

from ansor.codegen.image.elf import Segment
from ansor.measure.boards.loader import Loader
from ansor.measure.boards.places import NoRoom, Places
from ansor.measure.wire.wire import WireError


class Memory:
    """A wire to 8 KiB; it may lose writes."""

    name = "memory"

    def __init__(self) -> None:
        self.bytes, self.sent, self.loses = bytearray(8192), 0, False

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.bytes[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.sent += len(data)
        if not self.loses:
            self.bytes[address : address + len(data)] = data


@pytest.mark.parametrize("seed", range(100))
def test_memory_is_as_asked_whatever_programs_did(seed: int) -> None:
    source, memory, loader = random.Random(seed), Memory(), Loader()
    for _ in range(20):
        start, size = source.randrange(0, 4096), source.randrange(1, 500)
        segments = [Segment(start, source.choice((bytes(size), source.randbytes(size)))), Segment(6000, b"common")]
        loader.load(memory, segments)  # type: ignore[arg-type]  # all that it uses of a wire
        assert all(memory.read(one.address, len(one.content)) == one.content for one in segments)
        low = source.randrange(4096)
        memory.bytes[low : low + 300] = source.randbytes(300)
        loader.changed(low, low + 300)


def test_what_is_there_is_not_sent_again_and_a_lost_write_is_noticed() -> None:
    memory, loader, parts = Memory(), Loader(), [Segment(100, bytes(range(200)))]
    assert loader.fresh and loader.load(memory, parts) and not loader.fresh  # type: ignore[arg-type]
    sent = memory.sent
    assert not loader.load(memory, parts) and memory.sent == sent
    loader.forget()
    memory.loses = True
    memory.bytes[150] = 0
    with pytest.raises(WireError, match="does not keep written data"):
        loader.load(memory, parts)
    assert loader.fresh


def test_what_may_still_be_there_is_read_and_only_what_differs_is_written() -> None:
    memory, loader, part = Memory(), Loader(), Segment(128, random.Random(3).randbytes(2048))
    memory.bytes[128 : 128 + 2048] = part.content
    assert loader.restore(memory, part) == () and memory.sent == 0  # type: ignore[arg-type]
    memory.bytes[1000] ^= 1
    loader.changed(990, 1010)
    assert [(one.address, len(one.content)) for one in loader.restore(memory, part)] == [(960, 64)]  # type: ignore[arg-type]
    assert memory.read(128, 2048) == part.content and loader.restore(memory, part) == ()  # type: ignore[arg-type]


class Summed(Memory):
    """One whose board sums up what it holds."""

    def crc(self, address: int, size: int) -> int:
        return zlib.crc32(self.bytes[address : address + size])


def test_a_board_that_sums_up_its_memory_is_sent_what_is_wrong_in_it() -> None:
    memory, loader, parts = Summed(), Loader(), [Segment(64, random.Random(2).randbytes(6000))]
    loader.load(memory, parts)  # type: ignore[arg-type]
    first = memory.sent
    memory.bytes[5000] ^= 1
    loader.forget()
    assert [one.address for one in loader.load(memory, parts)] == [64 + 4096]  # type: ignore[arg-type]
    assert first >= 6000 and memory.sent - first < 2048 + 64 and memory.read(64, 6000) == parts[0].content
    loader.forget()
    memory.bytes[100], memory.loses = memory.bytes[100] ^ 1, True
    with pytest.raises(WireError, match="does not keep written data"):
        loader.load(memory, parts)  # type: ignore[arg-type]
    assert loader.fresh


@pytest.mark.parametrize("seed", range(50))
def test_places_do_not_overlap(seed: int) -> None:
    source, places, taken = random.Random(seed), Places(1000, 20000), dict[int, int]()
    for _ in range(100):
        if taken and source.random() < 0.4:
            places.give_back(gone := source.choice(list(taken)))
            del taken[gone]
            continue
        size = source.randrange(1, 3000)
        try:
            start = places.take(size)
        except NoRoom:
            continue
        assert start % 64 == 0 and start >= 1000 and start + size <= 20000
        assert all(start + size <= other or other + taken[other] <= start for other in taken)
        taken[start] = size
        assert places.low == min(taken)
