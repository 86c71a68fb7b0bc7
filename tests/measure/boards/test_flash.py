"""What is written to flash, and what is not: against a board that is an array, with flash in blocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ansor.codegen.image.board import Board, Memory
from ansor.codegen.image.elf import Segment
from ansor.errors import DeviceError
from ansor.measure.boards.flash import FlashLoader, parts_of
from ansor.measure.wire.wire import FlashError, FlashRegion, WireError
from ansor.targets.boards.catalogue import find_board

START, BLOCK, SIZE = 0x08000000, 256, 4096
REGIONS = (FlashRegion(START - 1024, 1024, 512), FlashRegion(START, 2048, BLOCK), FlashRegion(START + 2048, 4096, 1024))
BOARD = replace(find_board("netduinoplus2"), memories=(Memory("ram", 0, 1024), Memory("flash", START, SIZE, flash=True)))


class Flash:
    """A wire to flash from START - 1024 on. fails: what `program` raises, once for each; loses: an address whose lowest bit does not change."""

    name = "array"

    def __init__(self, regions: tuple[FlashRegion, ...] = REGIONS) -> None:
        self.bytes, self.regions = bytearray(random.Random(1).randbytes(8192)), regions
        self.erased, self.read_bytes = Counter[int](), 0
        self.fails: list[WireError] = []
        self.loses: int | None = None

    def flash(self) -> tuple[FlashRegion, ...]:
        return self.regions

    def read(self, address: int, size: int) -> bytes:
        self.read_bytes += size
        at = address - REGIONS[0].start
        return bytes(self.bytes[at : at + size])

    def program(self, parts: Sequence[tuple[int, bytes]]) -> None:
        for address, content in parts:
            region = next(one for one in self.regions if one.start <= address < one.end)
            assert (address - region.start) % region.block == 0 and address >= START and address + len(content) <= START + SIZE
            at = address
            while at < address + len(content):
                region = next(one for one in self.regions if one.start <= at < one.end)
                self.erased[at] += 1
                at += region.block
            assert at == address + len(content), "whole blocks"
            if self.fails:
                self._write(address, b"\xff" * len(content))  # erased, and no more
                raise self.fails.pop()
            made = bytearray(content)
            if self.loses is not None and address <= self.loses < address + len(content):
                made[self.loses - address] ^= 1
            self._write(address, made)

    def _write(self, address: int, content: bytes | bytearray) -> None:
        self.bytes[address - REGIONS[0].start : address - REGIONS[0].start + len(content)] = content


def load(loader: FlashLoader, wire: Flash, *segments: Segment) -> tuple[Segment, ...]:
    return loader.load(wire, segments)  # type: ignore[arg-type]  # all that it uses of a wire


@pytest.mark.parametrize("seed", range(60))
def test_flash_is_as_asked_and_nothing_else_changes(seed: int) -> None:
    source, wire, loader = random.Random(seed), Flash(), FlashLoader(BOARD)
    for _ in range(12):
        segments = [Segment(START + source.randrange(0, SIZE - 700), source.randbytes(source.randrange(1, 700))) for _ in range(source.randrange(1, 4))]
        model = bytearray(wire.bytes)
        for one in segments:
            model[one.address - START + 1024 : one.end - START + 1024] = one.content
        before = wire.bytes.copy()
        written = load(loader, wire, *segments)
        assert wire.bytes == model
        assert {at for one in written for at in range(one.address, one.end)} >= {
            START - 1024 + k for k, (one, other) in enumerate(zip(before, model, strict=True)) if one != other
        }
        if source.random() < 0.3:
            loader.forget()


def test_a_block_is_read_once_written_once_and_not_again_after_a_doubt() -> None:
    wire, loader, code = Flash(), FlashLoader(BOARD), Segment(START + 100, bytes(range(200)) * 2)
    first = load(loader, wire, code)
    assert [(one.address, len(one.content)) for one in first] == [(START, 2 * BLOCK)] and wire.erased == {START: 1, START + BLOCK: 1}
    assert wire.read_bytes == 4 * BLOCK  # before and after
    assert load(loader, wire, code) == () and wire.read_bytes == 4 * BLOCK
    loader.forget()
    assert load(loader, wire, code) == () and wire.read_bytes == 6 * BLOCK and wire.erased.total() == 2
    loader.forget()
    wire.bytes[1024 + 300] ^= 1
    assert [one.address for one in load(loader, wire, code)] == [START + BLOCK] and wire.erased == {START: 1, START + BLOCK: 2}


def test_segments_share_a_block() -> None:
    wire, loader = Flash(), FlashLoader(BOARD)
    written = load(loader, wire, Segment(START + 8, b"one"), Segment(START + 16, b"two"), Segment(START + 2048, b"far"))
    assert [(one.address, len(one.content)) for one in written] == [(START, BLOCK), (START + 2048, 1024)]
    assert load(loader, wire) == ()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_breaks_what_is_loaded_is_there(seed: int) -> None:
    """A load either raises, or all that it was given is in flash."""
    source, wire, loader, broke = random.Random(seed), Flash(), FlashLoader(BOARD), 0
    for _ in range(30):
        wire.fails = [WireError("it broke")] if source.random() < 0.3 else []
        code = Segment(START + source.randrange(4) * 600, bytes((source.randrange(3),)) * source.randrange(1, 900))
        try:
            load(loader, wire, code)
        except WireError:
            broke += 1
        else:
            assert wire.read(code.address, len(code.content)) == code.content
    assert broke


@pytest.mark.parametrize("error", [WireError("it broke"), FlashError("refused")])
def test_after_a_failure_nothing_is_known(error: WireError) -> None:
    wire, loader, code = Flash(), FlashLoader(BOARD), Segment(START, b"code")
    wire.fails.append(error)
    with pytest.raises(type(error)):
        load(loader, wire, code)
    read = wire.read_bytes
    load(loader, wire, code)
    assert wire.read_bytes == read + 2 * BLOCK and wire.read(START, 4) == b"code"


def test_flash_that_does_not_keep_what_is_written_is_said_and_given_up() -> None:
    """It is tried again once: flash wears. A link that is lost does not count."""
    wire, loader, code = Flash(), FlashLoader(BOARD), Segment(START, bytes(BLOCK))
    wire.loses = START + 77
    with pytest.raises(FlashError, match="array: flash does not keep written data: 0x00 was written at 0x800004d, and 0x01 was read back"):
        load(loader, wire, code)
    wire.fails.append(WireError("it broke"))
    with pytest.raises(WireError, match="it broke"):
        load(loader, wire, code)
    with pytest.raises(DeviceError, match="code of netduinoplus2 to its flash: .* it was tried 2 times; is the flash write-protected or worn out") as caught:
        load(loader, wire, code)
    assert not isinstance(caught.value, WireError) and wire.erased[START] == 3


def test_success_counts_failures_anew() -> None:
    wire, loader = Flash(), FlashLoader(BOARD)
    for number in range(4):
        wire.fails.append(FlashError("refused"))
        with pytest.raises(FlashError):
            load(loader, wire, Segment(START, bytes((number, 1))))
        load(loader, wire, Segment(START, bytes((number, 1))))


@pytest.mark.parametrize(("regions", "words"), [
    ((FlashRegion(0, 4096, 1024),), r"'flash', 0x8000000 to 0x8001000, is for code, and array reports no flash there, but 0x0 to 0x1000; .*-code=ram"),
    ((FlashRegion(START, 2048, 1024),), "is larger than the flash that array reports, which ends at 0x8000800; check size of the memory 'flash'"),
    ((FlashRegion(START, 2048, 1024), FlashRegion(START + 3072, 2048, 1024)), "which ends at 0x8000800"),
    ((FlashRegion(START, 8192, 8192),), "the block of flash from 0x8000000 to 0x8002000 reaches beyond its memory 'flash', 0x8000000 to 0x8001000"),
    ((FlashRegion(START - 256, 8192, 1024),), "the block of flash from 0x7ffff00 to 0x8000300 reaches beyond"),
])  # fmt: skip
def test_flash_that_is_not_as_the_file_says_is_refused(regions: tuple[FlashRegion, ...], words: str) -> None:
    wire = Flash(regions)
    with pytest.raises(DeviceError, match=words) as caught:
        FlashLoader(BOARD).check(wire)  # type: ignore[arg-type]  # all that it uses of a wire
    assert str(caught.value).startswith("the board netduinoplus2 does not match its file: ")


def test_a_server_without_any_flash_is_refused_and_not_the_file() -> None:
    with pytest.raises(DeviceError, match="for netduinoplus2 over array: .* in flash memory, but the GDB server reports no writable .*; use -code=ram$"):
        FlashLoader(BOARD).check(Flash(()))  # type: ignore[arg-type]  # all that it uses of a wire


def test_a_board_may_declare_less_than_there_is() -> None:
    """Its last block then is not touched if it reaches beyond."""
    small = replace(BOARD, memories=(BOARD.data, Memory("flash", START, 2048 + 512, flash=True)))
    wire, loader = Flash(), FlashLoader(small)
    loader.check(wire)  # type: ignore[arg-type]  # all that it uses of a wire
    load(loader, wire, Segment(START, b"first"))
    with pytest.raises(DeviceError, match="the block of flash from 0x8000800 to 0x8000c00 reaches beyond its memory 'flash', 0x8000000 to 0x8000a00"):
        load(loader, wire, Segment(START + 2040, bytes(16)))
    assert wire.erased == {START: 1}


def test_a_wire_that_cannot_write_flash_is_refused() -> None:
    class Plain:
        name = "serial:/dev/ttyUSB0"

    loader, words = FlashLoader(BOARD), r"asked to run programs for netduinoplus2 over serial:/dev/ttyUSB0: their code is in flash memory.*-code=ram"
    with pytest.raises(DeviceError, match=words):
        loader.check(Plain())  # type: ignore[arg-type]  # all that it asks of a wire
    with pytest.raises(DeviceError, match=words):
        loader.load(Plain(), [Segment(START, b"code")])  # type: ignore[arg-type]


def board(code: str) -> Board:
    return find_board("netduinoplus2").with_code(code)


def test_vectors_for_simulators_are_not_written() -> None:
    """With code in RAM nothing goes to flash."""
    ram, vectors = Segment(0x20000000, b"code"), Segment(START, b"vectors")
    assert parts_of([ram, vectors], board("ram")) == ([ram], [])
    assert parts_of([ram, vectors], board("flash")) == ([ram], [vectors])
