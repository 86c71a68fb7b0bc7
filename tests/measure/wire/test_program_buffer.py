"""Memory of all shapes of debug modules agrees with a bytearray."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ansor.measure.wire import program_buffer
from ansor.measure.wire.debug_module import DebugModule
from ansor.measure.wire.program_buffer import Memory, Piece, pieces
from ansor.measure.wire.wire import WireError
from tests.measure.wire.fake_debug_module import BASE, FakeDebugModule

Connect = Callable[[FakeDebugModule], DebugModule]
SHAPES = {
    "default": FakeDebugModule(),
    "four": FakeDebugModule(data=4, program=6),
    "six": FakeDebugModule(data=6, program=6),
    "explicit": FakeDebugModule(program=8, ends_itself=False),
    "by hand": FakeDebugModule(automatic=False),
    "by hand, four": FakeDebugModule(data=4, program=6, automatic=False),
    "slow": FakeDebugModule(command_clocks=3, access_clocks=1),
    "32": FakeDebugModule(bits=32),
    "32, one": FakeDebugModule(bits=32, data=1),
    "32, twelve": FakeDebugModule(bits=32, data=12, program=16),
}


def halted(module: DebugModule) -> Memory:
    module.halt()
    return Memory(module)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_agrees_with_a_model(connect: Connect, shape: str) -> None:
    chip, source = replace(SHAPES[shape], memory=bytearray(1 << 10)), random.Random(shape)
    memory = halted(connect(chip))
    model = bytearray(source.randbytes(1 << 10))
    memory.write(BASE, bytes(model))
    assert chip.memory == model
    for size in (*range(1, 40), 64, 101):
        at = source.choice((0, 1024 - size, source.randrange(1024 - size)))
        data = source.randbytes(size)
        memory.write(BASE + at, data)
        model[at : at + size] = data
        assert chip.memory == model, (at, size)
        at = source.choice((0, 1024 - size, source.randrange(1024 - size)))
        assert memory.read(BASE + at, size) == model[at : at + size], (at, size)


def test_the_last_byte_is_read_without_the_one_after_it(connect: Connect) -> None:
    for shape in SHAPES.values():
        chip = replace(shape, memory=bytearray(range(64)))
        memory = halted(connect(chip))
        for size in (1, 3, 8, 16, 24, 33, 64):
            assert memory.read(BASE + 64 - size, size) == bytes(range(64 - size, 64))


def test_much_goes_in_parts(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_buffer, "PART", 100)
    chip, data = FakeDebugModule(), random.Random(1).randbytes(450)
    memory = halted(connect(chip))
    memory.write(BASE + 3, data)
    assert memory.read(BASE + 3, 450) == data == bytes(chip.memory[3:453])


def test_nothing_is_nothing(connect: Connect) -> None:
    memory = halted(connect(FakeDebugModule()))
    memory.write(BASE, b"")
    assert memory.read(BASE, 0) == b""


def test_pieces_are_aligned_and_cover_the_range() -> None:
    for unit, units in ((8, 1), (8, 2), (8, 3), (4, 1), (4, 3)):
        for address in range(20):
            for size in range(80):
                at = address
                for piece in pieces(address, size, unit, units):
                    assert piece.address == at and piece.address % piece.unit == 0 and piece.unit <= unit and piece.units in (1, units)
                    at += piece.size
                assert at == address + size


def test_a_word_goes_at_once() -> None:
    assert list(pieces(0x1004, 4, 8, 2)) == [Piece(0x1004, 4, 1, 1)]
    assert list(pieces(0x1000, 64, 8, 2)) == [Piece(0x1000, 8, 2, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_where_no_memory_is_the_address_is_said(connect: Connect, shape: str) -> None:
    memory = halted(connect(replace(SHAPES[shape], memory=bytearray(64))))
    for what, ask in (("write", lambda: memory.write(BASE, bytes(100))), ("read", lambda: memory.read(BASE, 100))):
        with pytest.raises(WireError, match=f"asked to {what} 100 bytes of memory at 0x80000000") as caught:
            ask()
        said = re.search(r"exception in the (\d+) bytes from 0x(\w+); is there memory", str(caught.value))
        assert said and int(said[2], 16) <= BASE + 64 < int(said[2], 16) + int(said[1]), caught.value
    memory.write(BASE, b"again")
    assert memory.read(BASE, 5) == b"again"


@pytest.mark.parametrize(("address", "size"), [(-1, 4), (1 << 64, 1), ((1 << 64) - 2, 4)])
def test_addresses_are_within_the_registers(connect: Connect, address: int, size: int) -> None:
    memory = halted(connect(FakeDebugModule()))
    with pytest.raises(WireError, match="not within the 64 bits"):
        memory.read(address, size)
    with pytest.raises(WireError, match="not within the 64 bits"):
        memory.write(address, bytes(size))
