"""Flash behind a GDB server: memory maps, good and bad, and the packets that write it, against a server of this process that has NOR flash."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from ansor.measure.wire.gdb import GdbWire, open_gdb
from ansor.measure.wire.gdb_flash import flash_regions
from ansor.measure.wire.gdb_packets import LIMIT
from ansor.measure.wire.wire import FlashError, Flashing, FlashRegion, WireError
from ansor.testing.wire_contract import FlashContract
from ansor.testing.wire_programs import RISCV, STOP
from tests.measure.wire.fake_gdb import FLASH, START, FakeGdb
from tests.measure.wire.nor_flash import memory_map

FIRST, SECOND = FLASH


def opened(server: FakeGdb, options: str = "timeout=1") -> GdbWire:
    return open_gdb(f"gdb://127.0.0.1:{server.port}?{options}")


class TestFakeGdb(FlashContract):
    """Packets as small as a server may ask for, and as large as this one does."""

    features = b"PacketSize=400;QStartNoAckMode+;qXfer:features:read+"

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FakeGdb(features=self.features, flash=FLASH) as self.fake:
            yield
            assert not self.fake.nor.broken

    def open(self) -> GdbWire:
        return opened(self.fake)


class TestSmallPackets(TestFakeGdb):
    features = b"PacketSize=44;qXfer:features:read+"


def openocd(*rows: str) -> str:
    return "<memory-map>\n" + "\n".join(rows) + "\n</memory-map>\n"


def flash(start: object, length: object, block: object) -> str:
    return f'<memory type="flash" start="{start}" length="{length}">\n<property name="blocksize">{block}</property>\n</memory>'


@pytest.mark.parametrize(("text", "found"), [
    (openocd('<memory type="ram" start="0x00000000" length="0x8000000"/>', flash("0x08000000", "0x10000", "0x4000"), flash("0x08010000", "0x10000", "0x10000"),
             '<memory type="ram" start="0x08020000" length="0xf7fe0000"/>'),
     [FlashRegion(0x08000000, 0x10000, 0x4000), FlashRegion(0x08010000, 0x10000, 0x10000)]),
    ('<?xml version="1.0"?><!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map V1.0//EN" "http://sourceware.org/gdb/gdb-memory-map.dtd">'
     '<memory-map><memory type="ram" start="0x20000000" length="0x5000"/><memory type="flash" start="0x8000000" length="0x10000">'
     '<property name="blocksize">0x400</property></memory></memory-map>', [FlashRegion(0x08000000, 0x10000, 0x400)]),
    (openocd(flash(4096, 1024, " 512 "), "<!-- " + flash(0, 1, 1) + " -->", flash("0x0", "0X400", 1024)),
     [FlashRegion(0, 1024, 1024), FlashRegion(4096, 1024, 512)]),
    (openocd("<memory type='flash' length='0x20' start='0x10'><property name='sectors'>9</property><property name='blocksize'>16</property></memory>"),
     [FlashRegion(16, 32, 16)]),
    (openocd('<memory type="rom" start="0" length="0x1000"/>'), []),
    (openocd(flash("0xffffffff00000000", "0x100000000", "0x10000")), [FlashRegion(0xFFFFFFFF00000000, 1 << 32, 1 << 16)]),
])  # fmt: skip
def test_memory_maps(text: str, found: list[FlashRegion]) -> None:
    assert list(flash_regions(text)) == found


@pytest.mark.parametrize(("text", "words"), [
    ("", "is malformed or cut off: it has 0 characters"), ("<memory-map>", "cut off"), (openocd(flash(0, 16, 16))[:60], "cut off"),
    ("<target></target>", "is malformed"),
    (openocd('<memory type="flash" start="0" length="16"/>'), "without a valid start, length or block size: start '0', length '16', blocksize ''"),
    (openocd('<memory type="flash" start="0"><property name="blocksize">16</property></memory>'), "length ''"),
    (openocd('<memory type="flash" length="16"><property name="blocksize">16</property></memory>'), "start ''"),
    (openocd(flash("-16", 16, 16)), "start '-16'"), (openocd(flash(0, 16, "lots")), "blocksize 'lots'"), (openocd(flash(0, 16, "0x")), "blocksize '0x'"),
    (openocd(flash("0x10000000000000000", 16, 16)), "without a valid start"),
    (openocd(flash(0, 16, 0)), "flash at 0x0 of 16 bytes in blocks of 0 bytes, which is impossible"), (openocd(flash(0, 0, 16)), "impossible"),
    (openocd(flash(0, 16, 32)), "impossible"), (openocd(flash(0, 40, 16)), "impossible"), (openocd(flash("0xffffffffffffff00", 512, 256)), "impossible"),
    (openocd(flash(0, 32, 16), flash(16, 32, 16)), "overlapping regions of flash, at 0x0 and at 0x10"),
    (openocd(*[flash(0, 16, 16)] * 5000), "more than 4096 regions"),
])  # fmt: skip
def test_memory_maps_that_make_no_sense_are_one_sentence(text: str, words: str) -> None:
    with pytest.raises(WireError) as caught:
        flash_regions(text)
    assert words in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("seed", range(300))
def test_any_text_is_regions_or_one_sentence(seed: int) -> None:
    """Parts of a map that are lost, repeated or changed."""
    source = random.Random(seed)
    text = bytearray(memory_map(FLASH, '<memory type="ram" start="0" length="0x100"/>'))
    for _ in range(source.randrange(1, 6)):
        at, size = source.randrange(len(text)), source.randrange(1, 40)
        words = (b"<memory type='flash'>", b"</memory>", b"0x", b"99999999999999999999")
        change = source.choice((b"", bytes(text[at : at + size]) * 2, source.randbytes(size), *words))
        text[at : at + source.randrange(size)] = change
    try:
        found = flash_regions(text.decode("utf-8", "replace"))
    except WireError as error:
        assert "memory map" in str(error) and "\n" not in repr(str(error)[:200])
        return
    assert all(one.block > 0 and one.size > 0 and one.size % one.block == 0 for one in found)
    assert all(one.end <= other.start for one, other in zip(found, found[1:], strict=False))


def test_the_packets() -> None:
    """Erase what is next to each other at once, write it in pieces, and end the group."""
    with FakeGdb(features=b"PacketSize=c0;QStartNoAckMode+;qXfer:features:read+", flash=FLASH) as server:
        wire, sent = opened(server), len(server.seen)
        one, two, content = 0x80008400, 0x80008C00, b"#$}*" + bytes(0x400 - 4)
        wire.program([(one, content), (two, content + bytes(0x1000))])
        asked = [said for said in server.seen[sent:] if said.startswith((b"v", b"qXfer:memory"))]
        wire.close()
    assert asked[:2] == [b"qXfer:memory-map:read::0,98", b"qXfer:memory-map:read::98,98"]
    assert asked[2:5] == [b"vFlashErase:80008400,400", b"vFlashErase:80008c00,400", b"vFlashErase:80009000,1000"]
    assert asked[5] == b"vFlashWrite:80008400:" + content[:64] and asked[6] == b"vFlashWrite:80008440:" + bytes(64)
    assert asked[-1] == b"vFlashDone" and len(asked) == 5 + 16 + 16 + 64 + 1
    assert wire.traffic.sent == 0x400 + 0x1400


def test_a_server_without_a_map_has_no_flash() -> None:
    with FakeGdb() as server, contextlib.closing(opened(server)) as wire:
        assert isinstance(wire, Flashing) and wire.flash() == ()
        with pytest.raises(FlashError, match="asked to write 4 bytes of flash at 0x80008000, which are not whole blocks"):
            wire.program([(FIRST.start, b"1234")])
    with FakeGdb(flash=FLASH, says={b"qXfer:memory": b"E01"}) as server, contextlib.closing(opened(server)) as wire:
        assert wire.flash() == ()


@pytest.mark.parametrize("text", [openocd("<memory " + "a" * LIMIT + ">"), openocd("<!--" * (LIMIT // 4))], ids=["name", "comments"])
def test_a_map_as_long_as_it_may_be_does_not_hold_up_a_run(text: str) -> None:
    """Reading takes time in proportion to its length, whatever it says."""
    with contextlib.suppress(WireError):
        assert flash_regions(text) == ()


def test_a_map_that_makes_no_sense_leaves_the_wire_usable() -> None:
    with FakeGdb(flash=FLASH, says={b"qXfer:memory": b"l<memory-map>"}) as server, contextlib.closing(opened(server)) as wire:
        with pytest.raises(WireError, match=r"^gdb://.*memory map is malformed or cut off"):
            wire.flash()
        wire.write(START, b"still")
        assert wire.read(START, 5) == b"still"


@pytest.mark.parametrize("parts", [
    [(FIRST.start + 4, bytes(FIRST.block))], [(FIRST.start, bytes(FIRST.block - 1))], [(FIRST.start, b"")], [(START, bytes(FIRST.block))],
    [(FIRST.start + FIRST.block, bytes(FIRST.block)), (FIRST.start, bytes(FIRST.block))], [(FIRST.start, bytes(FIRST.block))] * 2,
    [(FIRST.start, bytes(FIRST.size + SECOND.block // 2))], [(SECOND.start, bytes(SECOND.size + 0x400))],
])  # fmt: skip
def test_parts_that_are_no_whole_blocks_are_refused_before_anything_is_erased(parts: list[tuple[int, bytes]]) -> None:
    with FakeGdb(flash=FLASH) as server, contextlib.closing(opened(server)) as wire:
        with pytest.raises(FlashError, match="not whole blocks"):
            wire.program(parts)
        assert not server.nor.erased and not server.nor.programmed


@pytest.mark.parametrize(("packet", "answer", "words"), [
    (b"vFlashErase", b"E01", "1024 bytes of flash at 0x80008000 cannot be erased: the GDB server says 'E01'"),
    (b"vFlashErase", b"", "cannot be erased: the GDB server says that it does not know the command"),
    (b"vFlashWrite", b"E.memtype", "bytes of flash at 0x80008000 cannot be written: the GDB server says 'E.memtype'"),
    (b"vFlashDone", b"E05", "1024 bytes of flash from 0x80008000 on cannot be written: the GDB server says 'E05'"),
])  # fmt: skip
def test_what_a_server_refuses_is_said_and_nothing_of_it_is_left_there(packet: bytes, answer: bytes, words: str) -> None:
    """The next group is not mixed with the one that failed."""
    content = bytes(range(256)) * 4
    with FakeGdb(flash=FLASH) as server, contextlib.closing(opened(server)) as wire:
        server.nor.fails[packet] = answer
        with pytest.raises(FlashError) as caught:
            wire.program([(FIRST.start, bytes(1024))])
        assert words in str(caught.value)
        with pytest.raises(WireError, match="`reset` opens it again"):
            wire.read(START, 4)
        server.nor.fails.clear()
        wire.reset()
        wire.program([(FIRST.start, content)])
        assert wire.read(FIRST.start, 1024) == content and not server.nor.broken


@pytest.mark.parametrize("at", [b"vFlashErase", b"vFlashWrite", b"vFlashDone"])
def test_a_connection_that_is_lost_in_the_middle(at: bytes) -> None:
    content = bytes(range(256)) * 4

    class Dropping(FakeGdb):
        def _flash(self, data: bytes) -> bytes:
            if data.startswith(at):
                self.drop()
            return super()._flash(data)

    with Dropping(flash=FLASH) as server, contextlib.closing(opened(server)) as wire:
        with pytest.raises(WireError, match="connection") as caught:
            wire.program([(FIRST.start, bytes(1024))])
        assert not isinstance(caught.value, FlashError)
        at = b"never"
        wire.reset()
        wire.program([(FIRST.start, content)])
        assert wire.read(FIRST.start, 1024) == content and not server.nor.broken


def test_a_program_in_flash_stops_at_a_breakpoint_of_the_processor() -> None:
    """Flash cannot hold one."""
    with FakeGdb(flash=FLASH) as server, contextlib.closing(opened(server)) as wire:
        wire.program([(FIRST.start, RISCV.traps.ljust(1024, b"\0"))])
        wire.execute(FIRST.start, FIRST.start + STOP, 1.0)
        wire.write(START, RISCV.traps)
        wire.execute(START, START + STOP, 1.0)
        assert [said[:2] for said in server.seen if said[:1] == b"Z"] == [b"Z1", b"Z0"]
