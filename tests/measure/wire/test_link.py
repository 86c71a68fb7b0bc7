"""Requests and answers over lines that are bad, slow, dead, or loops."""

from __future__ import annotations

import random

import pytest

from ansor.measure.wire.link import BoardReset, Silence
from ansor.measure.wire.port import SerialPort
from ansor.measure.wire.serial import SerialWire
from ansor.measure.wire.wire import WireError
from tests.measure.wire.faulty_pipe import BAUD_115200, NONE, Faults, FaultyPipe, random_faults

pytestmark = pytest.mark.compiler
COUNTER, ENTRY_BYTES, STOP, AREA = 0, 4, 16, 64
SIZE = 4096


class Checked:
    """Operations on a wire beside what they have to give: bytes, or None where nobody can know."""

    def __init__(self, wire: SerialWire, pipe: FaultyPipe, source: random.Random) -> None:
        self.wire, self.pipe, self.source = wire, pipe, source
        self.base = wire.facts.free[0]
        self.model: list[int | None] = [None] * SIZE
        self.failed = self.asked = self.done = 0

    def step(self) -> None:
        """One operation; where it fails it says so, and what it touched is not known."""
        try:
            self.source.choice((self.write, self.write, self.read, self.execute))()
        except BoardReset:
            self.failed += 1
            self.model = [None] * SIZE
        except WireError:
            self.failed += 1

    def write(self) -> None:
        data = self.source.choice((self.source.randbytes, lambda size: b"\x7e" * size))(self.source.choice((1, 7, 600, 2500)))
        at = self.source.randrange(AREA, SIZE - len(data))
        self.model[at : at + len(data)] = [None] * len(data)
        self.wire.write(self.base + at, data)
        self.model[at : at + len(data)] = data

    def read(self) -> None:
        size = self.source.choice((1, 5, 700, 2000))
        at = self.source.randrange(SIZE - size)
        for found, known in zip(self.wire.read(self.base + at, size), self.model[at : at + size], strict=True):
            assert known is None or found == known

    def execute(self) -> None:
        self.model[COUNTER : COUNTER + ENTRY_BYTES] = [None] * ENTRY_BYTES
        self.asked += 1
        self.done += 1  # unless it fails
        try:
            assert self.wire.execute(self.base + COUNTER, self.base + STOP, 2.0).reason == "stop"
        except WireError:
            self.done -= 1
            raise
        finally:  # each once at most, even where its request came long after it was given up
            assert self.done <= self.pipe.monitor.runs <= self.asked


def _checked(seed: int, faults: Faults) -> Checked | None:
    pipe, source = FaultyPipe(seed, faults), random.Random(seed)
    for _ in range(4):
        try:
            return Checked(SerialWire(pipe, "pipe"), pipe, source)
        except WireError:
            pipe._closed = False  # as if it were opened anew
    return None


@pytest.mark.parametrize("part", range(10))
def test_no_fault_gives_wrong_bytes_and_the_link_recovers(part: int) -> None:
    fine = 0
    for seed in range(100 * part, 100 * part + 100):
        checked = _checked(seed, random_faults(random.Random(seed)))
        if checked is None:
            continue
        for _ in range(5):
            checked.step()
        checked.pipe.faults = NONE
        checked.failed = 0
        for _ in range(2):  # what is still under way, and what was lost
            checked.step()
        assert checked.failed <= 1, "of a reset it hears once"
        for step in (checked.write, checked.read, checked.execute):
            step()
        fine += 1
    assert fine > 80


def test_a_good_line_repeats_nothing() -> None:
    pipe = FaultyPipe(1)
    wire = SerialWire(pipe, "pipe")
    data = random.Random(1).randbytes(5000)
    wire.write(wire.facts.free[0], data)
    assert wire.read(wire.facts.free[0], 5000) == data
    traffic = wire.traffic
    assert (traffic.sent, traffic.received, traffic.repeated, traffic.damaged) == (5000, 5000, 0, 0)
    assert 0 < traffic.overhead < 1500


@pytest.mark.parametrize("to_board", [True, False])
def test_a_slow_line_is_used_well(to_board: bool) -> None:
    """More than 80 bytes of memory for 100 that the line could carry, both ways; this time is counted, not measured."""
    pipe = FaultyPipe(1, bytes_per_second=BAUD_115200)
    wire = SerialWire(pipe, "pipe")
    data = random.Random(1).randbytes(8192)
    began = pipe.now()
    if to_board:
        wire.write(wire.facts.free[0], data)
    else:
        wire.read(wire.facts.free[0], len(data))
    assert len(data) / BAUD_115200 / (pipe.now() - began) > 0.8
    assert wire.traffic.repeated == 0


def test_a_board_that_was_reset_is_noticed_before_anything_is_believed() -> None:
    pipe = FaultyPipe(1)
    wire = SerialWire(pipe, "pipe")
    base = wire.facts.free[0]
    wire.write(base, b"before")
    pipe.monitor.power_cycle()
    with pytest.raises(BoardReset, match="pipe: the board was reset"):
        wire.read(base, 6)
    assert wire.read(base, 6) == b"\xa5" * 6
    wire.reset()
    wire.write(base, b"behind")
    assert wire.read(base, 6) == b"behind"


def test_a_board_that_was_reset_while_the_line_was_dead_is_noticed() -> None:
    pipe = FaultyPipe(1)
    wire = SerialWire(pipe, "pipe")
    pipe.faults = Faults(silence=1.0, seconds=1e9)
    with pytest.raises(Silence, match="no answer after 9 attempts"):
        wire.read(wire.facts.free[0], 6)
    pipe.faults, pipe._silent_until = NONE, 0.0
    pipe.monitor.power_cycle()
    with pytest.raises(BoardReset):
        wire.read(wire.facts.free[0], 6)
    assert len(wire.read(wire.facts.free[0], 6)) == 6


def test_a_line_without_a_monitor_says_so() -> None:
    with pytest.raises(Silence, match="pipe: no monitor answers; is the board on"):
        SerialWire(FaultyPipe(1, Faults(silence=1.0, seconds=1e9)), "pipe")


def test_a_line_that_is_a_loop_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.measure.wire.link.ATTEMPTS", 1)
    from ansor.measure.wire.link import Link

    port = SerialPort("loop://", 115200, "loop://")
    with pytest.raises(Silence, match="what is sent comes back: the line is a loop"):
        Link(port, "loop://").greet(attempts=1)
    port.close()
