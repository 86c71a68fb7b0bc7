"""The wire against Spike, whose debug module is another's reading of the specification."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import ClassVar

import pytest

from ansor.measure.wire.bitbang import BitbangWire, open_bitbang
from ansor.measure.wire.wire import Stopped, Wire, WireError
from ansor.testing.wire_contract import WireContract
from tests.spikes import MEMORY, SIZE, code, need_spike, running_spike

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("simulator")]
DEFAULT, LARGE = (), ("--dm-datacount=4", "--dm-progsize=6")
COUNTS = """
.option norelax
.globl _start
_start: li a0, 1000
    csrr a1, minstret
1:  addi a0, a0, -1
    bnez a0, 1b
    csrr a2, minstret
    sub a2, a2, a1
    la a3, count
    sw a2, 0(a3)
    j stop
.balign 16
stop: j stop
    .skip 16
    .balign 4
count: .word 0
"""


@pytest.fixture(scope="module")
def simulator() -> None:
    need_spike()


@pytest.fixture(scope="module", params=[(64, DEFAULT), (64, LARGE), (32, DEFAULT), (32, LARGE)], ids=["64", "64-large", "32", "32-large"])
def board(request: pytest.FixtureRequest, simulator: None) -> Iterator[tuple[str, int]]:
    """Where a Spike listens, and the bits of its registers."""
    bits, options = request.param
    with running_spike(bits, options) as text:
        yield text, bits


@pytest.fixture(scope="class")
def contracted(request: pytest.FixtureRequest, simulator: None) -> Iterator[None]:
    """One Spike for all tests of a class."""
    with running_spike(*request.cls.spike) as text:
        request.cls.text = text
        yield


@pytest.mark.usefixtures("contracted")
class TestSpike64(WireContract):
    memory = (MEMORY, 0x10000)
    nowhere = 0x20000000
    spike: ClassVar[tuple[int, tuple[str, ...]]] = (64, DEFAULT)
    text = ""

    def open(self) -> Wire:
        return open_bitbang(self.text)


class TestSpike32(TestSpike64):
    spike = (32, DEFAULT)


class TestSpike64Large(TestSpike64):
    spike = (64, LARGE)


class TestSpike32Large(TestSpike64):
    spike = (32, LARGE)


@pytest.fixture
def wire(board: tuple[str, int]) -> Iterator[BitbangWire]:
    wire = open_bitbang(board[0])
    yield wire
    wire.close()


def test_it_says_what_it_is(wire: BitbangWire, board: tuple[str, int]) -> None:
    assert wire.tap.idcode == 0xDEADBEEF and wire.abilities.bits == board[1] and wire.module.halted()


def test_256_kib_come_back(wire: BitbangWire) -> None:
    data = random.Random(1).randbytes(1 << 18)
    wire.write(MEMORY + 0x1003, data)
    assert wire.read(MEMORY + 0x1003, len(data)) == data
    assert wire.traffic.sent == wire.traffic.received == len(data)


def test_code_counts_its_own_instructions(wire: BitbangWire, board: tuple[str, int]) -> None:
    text, symbols = code(COUNTS, board[1])
    entry, stop, count = (symbols[name] for name in ("_start", "stop", "count"))
    for _ in range(3):
        wire.write(MEMORY, text)
        assert wire.execute(entry, stop, 10.0) == Stopped("stop", stop)
        assert int.from_bytes(wire.read(count, 4), "little") == 2001


def test_registers_of_a_program_are_not_those_of_the_debugger(wire: BitbangWire) -> None:
    """A loop is halted and goes on, with s0 and s1 as they were."""
    wire.write(MEMORY, bytes.fromhex("6f000000"))
    wire.module.write_register(0x1008, 0x1111)
    wire.module.write_register(0x1009, 0x2222)
    assert wire.execute(MEMORY, MEMORY + 0x100, 0.02) == Stopped("timeout", MEMORY)
    wire.read(MEMORY, 100)
    assert [wire.module.read_register(register) for register in (0x1008, 0x1009)] == [0x1111, 0x2222]


def test_it_stops_in_memory_that_cannot_be_written(wire: BitbangWire) -> None:
    """The program jumps to the start of Spike's boot ROM."""
    wire.write(MEMORY, bytes.fromhex("b7120000 67800200"))  # lui t0, 1; jr t0
    assert wire.execute(MEMORY, 0x1000, 5.0) == Stopped("stop", 0x1000)


def test_a_trap_without_a_handler_is_told(wire: BitbangWire) -> None:
    wire.reset()
    wire.write(MEMORY, bytes(4))
    stopped = wire.execute(MEMORY, MEMORY + 0x100, 0.02)
    assert stopped.reason == "timeout" and stopped.pc == 0 and "at its trap handler: mcause 0x1" in stopped.cause


def test_no_memory_is_an_error(wire: BitbangWire) -> None:
    with pytest.raises(WireError, match="write 100 bytes of memory at 0x20000000: the processor took an exception"):
        wire.write(0x20000000, bytes(100))
    with pytest.raises(WireError, match="exception in the [0-9]+ bytes from 0x84000000"):
        wire.read(MEMORY + SIZE - 48, 100)
    assert len(wire.read(MEMORY + SIZE - 47, 47)) == 47


def test_a_reset_keeps_memory(wire: BitbangWire) -> None:
    wire.write(MEMORY + 0x100, b"kept")
    wire.reset()
    assert wire.module.read_register(0x7B1) == 0x1000 and wire.read(MEMORY + 0x100, 4) == b"kept"


@pytest.mark.parametrize("option", [
    "--dmi-rti=3", "--dm-abstract-rti=30", "--dm-no-abstract-csr", "--dm-no-abstractauto", "--dm-no-hasel", "--dm-no-impebreak --dm-progsize=3",
    "--dm-datacount=6 --dm-progsize=6",
])  # fmt: skip
def test_other_debug_modules(option: str) -> None:
    data = random.Random(2).randbytes(5003)
    with running_spike(64, tuple(option.split())) as text:
        wire = open_bitbang(text)
        wire.write(MEMORY + 0x1001, data)
        assert wire.read(MEMORY + 0x1001, len(data)) == data
        wire.write(MEMORY, bytes.fromhex("13000000"))
        assert wire.execute(MEMORY, MEMORY + 4, 5.0) == Stopped("stop", MEMORY + 4)
        wire.close()


@pytest.mark.parametrize(("option", "words"), [
    ("--dm-auth", "asks for authentication"), ("--dm-no-impebreak", "a program buffer of 2 words; this wire needs 3"),
])  # fmt: skip
def test_debug_modules_that_are_not_enough_say_so(option: str, words: str) -> None:
    with running_spike(64, (option,)) as text, pytest.raises(WireError, match=words):
        wire = open_bitbang(text)
        try:
            wire.write(MEMORY, bytes(64))
        finally:
            wire.close()


def test_a_simulator_that_dies_is_an_error() -> None:
    with running_spike(64) as text:
        wire = open_bitbang(text)
    with pytest.raises(WireError):
        wire.write(MEMORY, bytes(64))
    with pytest.raises(WireError):
        wire.reset()
    wire.close()


def test_four_at_once() -> None:
    wrong: list[object] = []

    def one(text: str, seed: int) -> None:
        try:
            data = random.Random(seed).randbytes(20000)
            wire = open_bitbang(text)
            wire.write(MEMORY, data)
            wrong.extend([] if wire.read(MEMORY, len(data)) == data else [text])
            wire.close()
        except BaseException as error:
            wrong.append(error)

    with ExitStack() as stack:
        texts = [stack.enter_context(running_spike(64)) for _ in range(4)]
        threads = [threading.Thread(target=one, args=(text, seed)) for seed, text in enumerate(texts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(set(texts)) == 4 and not wrong and not any(thread.is_alive() for thread in threads)
