"""The GDB wire against a server of this process: what servers differ in, and what goes wrong on the way."""

import contextlib
import random
import threading
from collections.abc import Iterator

import pytest

from ansor.measure.wire.gdb import GdbWire, open_gdb
from ansor.measure.wire.wire import WireError
from ansor.testing.wire_contract import WireContract
from ansor.testing.wire_programs import RISCV, STOP, WORDS
from tests.measure.wire.fake_gdb import START, FakeGdb


def opened(server: FakeGdb, options: str = "timeout=1") -> GdbWire:
    return open_gdb(f"gdb://127.0.0.1:{server.port}?{options}")


class TestFakeGdb(WireContract):
    """The contract, without a simulator."""

    memory, nowhere, seconds, options = (START, 0x8000), 0x1000, 0.05, "timeout=1"
    lacks: tuple[bytes, ...] = ()

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FakeGdb(lacks=self.lacks) as self.fake:
            yield

    def open(self) -> GdbWire:
        return opened(self.fake, self.options)


class TestWithAcks(TestFakeGdb):
    options = "timeout=1&ack=1"


class TestPoorServer(TestFakeGdb):
    """Digits for data, all registers at once, breakpoints of the processor only, no description."""

    lacks, options = (b"X", b"p", b"P", b"Z0", b"qXfer"), "timeout=1&arch=riscv32"


def test_the_processor_is_known_once_the_server_describes_it() -> None:
    with FakeGdb() as server, contextlib.closing(opened(server)) as wire:
        assert (wire.abilities.processor, wire.abilities.bits) == ("riscv32", 32)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("127.0.0.1:3333", "the serial port 127.0.0.1:3333 cannot be opened: No such file or directory; for a TCP port write gdb://127.0.0.1:3333$"),
        ("/dev/nothing", "the serial port /dev/nothing cannot be opened: No such file or directory$"),
    ],
)
def test_a_port_without_slashes_is_no_serial_line(place: str, said: str) -> None:
    with pytest.raises(WireError, match=said):
        open_gdb(f"gdb:{place}")


def adds(wire: GdbWire) -> None:
    wire.write(START, RISCV.adds)
    wire.write(START + WORDS, bytes((1, 0, 0, 0, 2, 0, 0, 0)))
    assert wire.execute(START, START + STOP, 2.0).reason == "stop"
    assert wire.read(START + WORDS + 8, 4) == bytes((3, 0, 0, 0))


@pytest.mark.parametrize("seed", range(5))
def test_damage_is_mended_or_said_and_no_byte_is_wrong(seed: int) -> None:
    """One packet in some arrives with a changed byte, without its end, twice, or refused."""
    source, armed = random.Random(seed), False

    def damage(data: bytes) -> bytes:
        if not armed or source.random() > 0.06:
            return data
        at = source.randrange(len(data))
        changed = data[:at] + bytes((data[at] ^ source.randint(1, 255),)) + data[at + 1:]
        return source.choice((changed, changed, data[:at], data + data if len(data) > 1 else data, b"-" + data, b"noise" + data, b""))

    with FakeGdb(damage=damage) as server:
        wire, model = opened(server, "timeout=0.12&ack=1"), bytearray(1024)
        armed = True
        for _ in range(25):
            at, count = source.randrange(500), source.randrange(1, 500)
            data = source.randbytes(count)
            try:
                wire.write(START + at, data)
                model[at:at + count] = data
                assert wire.read(START, 1024) == model
            except WireError:
                armed = False
                wire.reset()
                wire.write(START, bytes(model))
                armed = True
        armed = False
        wire.reset()
        assert wire.read(START, 1024) == model
        assert wire.traffic.damaged + wire.traffic.repeated > 0
        wire.close()


@pytest.mark.parametrize("says, words", [
    ({b"m": b"zz"}, "asked for"), ({b"m": b"00" * 100}, "asked for"), ({b"m": b""}, "does not know the command"), ({b"m": b"E14"}, "cannot be read"),
    ({b"M": b"E01", b"X": b"E01"}, "cannot be written"), ({b"P": b"E01"}, "register 32 cannot be written"), ({b"Z": b"E09"}, "no breakpoint"),
    ({b"c": b"W00"}, "neither stopped"), ({b"c": b""}, "neither stopped"), ({b"p": b"E01"}, "register 32 cannot be read"), ({b"z": b"E01"}, "not be removed"),
    ({b"p": b"", b"g": b"xx"}, "neither `p` and `P`"),
])
def test_answers_that_make_no_sense_are_one_sentence(says: dict[bytes, bytes], words: str) -> None:
    """Each says what was asked and what came."""
    with FakeGdb(says=says) as server:
        wire = opened(server, "timeout=0.5")
        with pytest.raises(WireError) as caught:
            adds(wire)
        assert words in str(caught.value) or "does not know" in words, caught.value
        assert str(caught.value).startswith("gdb://") and "\n" not in str(caught.value)
        wire.close()


@pytest.mark.parametrize("flood", [b"+", b"-", b"$O6161#23", b"$T05#b9", b"x", b"$", b"$x#00"])
def test_a_flood_is_ended(flood: bytes) -> None:
    """Whatever comes without an end, instead of any answer."""
    stop = threading.Event()

    def damage(data: bytes) -> bytes:
        return flood * (200000 // len(flood)) if not stop.is_set() else data

    with FakeGdb(damage=damage) as server, pytest.raises(WireError):
        opened(server, "timeout=0.3")
    stop.set()


@pytest.mark.parametrize("says", [
    {b"qXfer": b"m" + b"<reg name='a'/>" * 20}, {b"qXfer": b"l<xi:include href='target.xml'/>"}, {b"?": b"W00"}, {b"?": b""},
    {b"qXfer": b"l<reg name='pc' bitsize='0'/>"}, {b"qXfer": b"l<reg name='pc' bitsize='99999'/>"}, {b"qXfer": b"l<xi:include href='a#b'/>"},
    {b"qSupported": b"PacketSize=" + b"f" * 300},
])
def test_a_hostile_beginning_is_one_sentence_or_harmless(says: dict[bytes, bytes]) -> None:
    """Descriptions without an end or that include themselves, packets of absurd sizes, boards that have ended."""
    with FakeGdb(says=says) as server:
        try:
            with contextlib.closing(opened(server, "timeout=1")) as wire:
                adds(wire)
        except WireError as error:
            assert "\n" not in str(error) and len(str(error)) < 400


def test_silence_is_said_and_reset_connects_again() -> None:
    """Until then every call says that the connection is lost."""
    silent = False
    with FakeGdb(damage=lambda data: b"" if silent else data) as server:
        wire = opened(server, "timeout=0.2")
        silent = True
        with pytest.raises(WireError, match="no answer to 'm80000000,4' in 0.2 s"):
            wire.read(START, 4)
        with pytest.raises(WireError, match="`reset` opens it again"):
            wire.read(START, 4)
        silent = False
        wire.reset()
        adds(wire)
        server.drop()
        with pytest.raises(WireError, match="connection"):
            wire.read(START, 4)
        wire.reset()
        adds(wire)
        wire.close()


def test_resets_that_are_refused_are_named() -> None:
    """And the one that is taken is found."""
    with FakeGdb(says={b"qRcmd," + b"reset halt".hex().encode(): b"unknown command".hex().encode()}) as server:
        wire = opened(server)
        wire.reset()
        assert b"qRcmd," + b"system_reset".hex().encode() in server.seen
        wire.close()
    with FakeGdb(says={b"qRcmd,7": b"E01", b"qRcmd,76": b"OK"}) as server:
        wire = opened(server)
        with pytest.raises(WireError, match="'reset halt'.*'system_reset'.*'reset'.*`\\?reset=`"):
            wire.reset()
        wire.close()
    with FakeGdb(lacks=(b"qRcmd",)) as server:
        wire = opened(server)
        assert not wire.abilities.resets
        with pytest.raises(WireError, match="no monitor commands"):
            wire.reset()
        wire.close()


@pytest.mark.parametrize("text", [
    "gdb://", "gdb://host", "gdb://host:99999", "http://a:1", "gdb://a:1/path", "gdb://a:1?speed=1", "gdb://a:1?arch=z80", "gdb://a:1?timeout=0", "gdb://a:1?timeout=nan",
    "gdb://a:1?ack=2", "gdb://a:1?baud=x", "gdb:", "gdb://a:1?arch", "gdb://a:1?arch=arm&arch=riscv32",
])
def test_texts_that_are_no_wire(text: str) -> None:
    with pytest.raises(WireError, match="gdb|http"):
        open_gdb(text)


def test_a_processor_that_is_not_described() -> None:
    """Memory works; running says what to add."""
    with FakeGdb(lacks=(b"qXfer",)) as server:
        wire = opened(server)
        wire.write(START, b"abc")
        assert wire.read(START, 3) == b"abc"
        with pytest.raises(WireError, match="add `arch="):
            wire.execute(START, START + STOP, 1.0)
        wire.close()
