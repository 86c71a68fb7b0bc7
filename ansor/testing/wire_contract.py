"""Tests that every wire must pass, ours and yours.

    from ansor.testing.wire_contract import WireContract
    from ansor.testing.wire_programs import THUMB

    class TestMyBoard(WireContract):
        memory = (0x20000000, 0x10000)
        programs = THUMB

        def open(self):
            return MyWire("/dev/ttyACM0")

pytest finds the inherited tests. They overwrite `memory`, and run three programs there (`wire_programs`).
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from ansor.measure.wire.wire import FlashError, Flashing, FlashRegion, Stopped, Wire, WireError
from ansor.testing.wire_programs import RISCV, SIZE, STOP, SUM, WORDS, Programs

GUARD = 8
METACHARACTERS = b"#$}*+-\x03\x00\xff\n\r'\"\\\x11\x13\xc0\xdb\x7e\x7d" + b"OK" + b"E01" + b"}" * 40 + b"*" * 40 + b"#" * 40 + b"\0" * 120


class WireContract:
    """Say in `open` how to open the wire, and set what is behind it.

    memory: address and number of writable bytes, at least 16 KiB and a multiple of 256; code runs there.
    programs: for the processor behind the wire. nowhere: an address without memory, if the board reports such accesses.
    sizes, alignments, steps, large: of reads and writes; set fewer for a slow wire. seconds: time limit of a program that never ends.
    """

    memory: tuple[int, int] = (0x80000000, 0x10000)
    programs: Programs = RISCV
    nowhere: int | None = None
    sizes: Sequence[int] = range(1, 65)
    alignments: Sequence[int] = range(8)
    steps = 200
    large = 9001
    seconds = 0.3
    patience = 30.0

    def open(self) -> Wire:
        """A wire to a halted board. Each test opens and closes one; some open another afterwards."""
        raise NotImplementedError("override `open` to open your wire")

    @pytest.fixture
    def wire(self) -> Iterator[Wire]:
        """A test's wire."""
        wire = self.open()
        yield wire
        wire.close()

    def test_it_says_what_it_is(self, wire: Wire) -> None:
        """It has a name and capabilities."""
        assert wire.name and wire.abilities.chunk >= 1 and wire.abilities.bits in (0, 8, 16, 32, 64), wire.abilities

    def test_all_sizes_at_all_alignments(self, wire: Wire) -> None:
        """Reads return what was written, and neighbouring bytes do not change."""
        start, source, last = self.memory[0], random.Random(1), max(self.sizes) + max(self.alignments) + 2 * GUARD
        for align in self.alignments:
            model = bytearray(source.randbytes(last))
            wire.write(start, bytes(model))
            for size in self.sizes:
                at, data = GUARD + align, source.randbytes(size)
                wire.write(start + at, data)
                model[at:at + size] = data
                assert wire.read(start + at, size) == data, (align, size)
                assert wire.read(start, last) == model, (align, size)

    def test_nothing_is_nothing(self, wire: Wire) -> None:
        """Reading and writing zero bytes works."""
        wire.write(self.memory[0], b"")
        assert wire.read(self.memory[0], 0) == b""

    def test_much_at_once(self, wire: Wire) -> None:
        """More than fits into one packet, also at odd addresses."""
        start, source = self.memory[0], random.Random(2)
        for at in (0, 3):
            data = source.randbytes(self.large)
            wire.write(start + at, data)
            assert wire.read(start + at, len(data)) == data
            assert wire.read(start + at + 1, len(data) - 2) == data[1:-1]

    def test_every_byte_comes_back(self, wire: Wire) -> None:
        """Also bytes with a meaning in a protocol: alone, paired with others, and many in a row."""
        every = bytes(range(256))
        start, data = self.memory[0], every + METACHARACTERS + every[::-1] + bytes(byte ^ 0x20 for byte in METACHARACTERS)
        for at in (0, 1):
            wire.write(start + at, data)
            assert wire.read(start + at, len(data)) == data

    def test_random_reads_and_writes_agree_with_a_model(self, wire: Wire) -> None:
        """Pieces of any size at any address of the whole memory."""
        (start, size), source = self.memory, random.Random(3)
        model = self._fill(wire)
        for _ in range(self.steps):
            count = source.choice((source.randint(1, 8), source.randint(1, 300)))
            at = source.choice((0, size - count, source.randrange(size - count + 1)))
            if source.random() < 0.5:
                data = source.choice((source.randbytes(count), bytes(count), b"}" * count, b"$" * count))
                wire.write(start + at, data)
                model[at:at + count] = data
            else:
                assert wire.read(start + at, count) == model[at:at + count], hex(start + at)
        for at in sorted({0, size // 2, max(size - 4096, 0)}):
            assert wire.read(start + at, min(4096, size - at)) == model[at:at + 4096], hex(start + at)

    def test_what_goes_through_is_counted(self, wire: Wire) -> None:
        """Counts the exact bytes of memory, without framing; nothing was damaged or resent."""
        start = self.memory[0]
        for size in (1, 3, 8, 64, 1000, self.large):
            before = wire.traffic
            wire.write(start + 1, bytes(size))
            between = wire.traffic
            wire.read(start + 1, size)
            after = wire.traffic
            assert (between.sent - before.sent, between.received - before.received) == (size, 0)
            assert (after.sent - between.sent, after.received - between.received) == (0, size)
            assert before.overhead <= between.overhead <= after.overhead
            assert (after.repeated, after.damaged) == (before.repeated, before.damaged)

    def test_a_program_runs_to_its_stop(self, wire: Wire) -> None:
        """It computes its result, stops at the given address, and leaves other memory as it was."""
        entry = self._entry()
        for first, second in ((1, 2), (0x7FFFFFFF, 0x12345678), (0xFFFFFFFF, 2)):
            self._adds(wire, entry, first, second)
            assert wire.read(entry, STOP) == self.programs.adds[:STOP]

    def test_a_program_runs_where_another_one_was(self, wire: Wire) -> None:
        """No cache and no breakpoint keeps the old program."""
        entry, other = self._entry(), self._entry() + SIZE
        for place in (entry, other, entry, other):
            self._adds(wire, place, place & 0xFFFF, 77)
            wire.write(place, bytes(SIZE))
            assert wire.read(place, SIZE) == bytes(SIZE)

    def test_many_runs_one_after_another(self, wire: Wire) -> None:
        """As in tuning."""
        entry = self._entry()
        wire.write(entry, self.programs.adds)
        for count in range(min(self.steps, 50)):
            wire.write(entry + WORDS, self._words(count, 1000))
            stopped = wire.execute(entry, entry + STOP, self.patience)
            assert stopped.reason == "stop" and wire.read(entry + SUM, 4) == self._words(count + 1000), (count, stopped)

    def test_a_program_that_never_ends_is_halted(self, wire: Wire) -> None:
        """It is halted in time, and the next one runs; the wire reports where it was, if it can halt programs."""
        entry = self._entry()
        wire.write(entry, self.programs.loops)
        stopped = self._bounded(lambda: self._run(wire, entry, self.seconds))
        assert stopped.reason == "timeout", stopped
        assert stopped.pc == entry or (stopped.pc is None and not wire.abilities.halts), stopped
        self._again(wire)
        self._adds(wire, entry, 3, 4)

    def test_a_trap_does_not_hang(self, wire: Wire) -> None:
        """It is reported, or its handler never ends; it does not count as a stop, and the board works after a reset."""
        entry = self._entry()
        wire.write(entry, self.programs.traps)
        stopped = self._bounded(lambda: self._run(wire, entry, self.seconds))
        assert stopped.reason in ("trap", "timeout"), stopped
        assert stopped.reason != "trap" or stopped.cause, "a trap has a cause, in words"
        self._again(wire)
        self._adds(wire, entry, 3, 4)

    def test_a_reset_leads_to_a_board_that_works(self, wire: Wire) -> None:
        """Twice, and again after a program has run. A wire that cannot reset says so."""
        if not wire.abilities.resets:
            with pytest.raises(WireError):
                wire.reset()
            self._adds(wire, self._entry(), 5, 6)
            return
        for _ in range(2):
            wire.reset()
            wire.reset()
            self._adds(wire, self._entry(), 5, 6)

    def test_what_is_no_memory_is_an_error_and_the_next_read_works(self, wire: Wire) -> None:
        """An address without memory is an error; not every board reports this."""
        if self.nowhere is None:
            return
        with pytest.raises(WireError) as caught:
            wire.read(self.nowhere, 16)
        assert f"{self.nowhere:x}" in str(caught.value)
        with contextlib.suppress(WireError):  # not every debugger checks
            wire.write(self.nowhere, bytes(16))
        wire.write(self.memory[0], b"12345")
        assert wire.read(self.memory[0], 5) == b"12345"

    def test_closing_ends_what_waits(self, wire: Wire) -> None:
        """From another thread, while a program runs. The board can then be opened again."""
        entry, started = self._entry(), threading.Event()
        seen: list[Stopped | WireError] = []
        wire.write(entry, self.programs.loops)

        def waits() -> None:
            started.set()
            try:
                seen.append(wire.execute(entry, entry + STOP, 10 * self.patience))
            except WireError as error:
                seen.append(error)

        thread = threading.Thread(target=waits, daemon=True)
        thread.start()
        started.wait()
        thread.join(self.seconds)
        wire.close()
        thread.join(self.patience)
        assert not thread.is_alive() and len(seen) == 1 and getattr(seen[0], "reason", "") != "stop", seen
        self._opens_and_works()

    def test_what_is_closed_says_so(self, wire: Wire) -> None:
        """Every call raises; closing twice is allowed, and it can be opened again."""
        wire.close()
        wire.close()
        entry = self._entry()
        asked: tuple[Callable[[], object], ...] = (
            lambda: wire.read(entry, 4), lambda: wire.write(entry, b"1234"), lambda: wire.execute(entry, entry + STOP, 1.0), wire.reset,
        )
        for ask in asked:
            with pytest.raises(WireError, match="closed"):
                ask()
        self._opens_and_works()

    def _entry(self) -> int:
        """Where code is placed: in the middle, at a multiple of 256."""
        return (self.memory[0] + self.memory[1] // 2 + SIZE - 1) // SIZE * SIZE

    @staticmethod
    def _words(*words: int) -> bytes:
        """Numbers as programs hold them: 32 bits, little-endian."""
        return b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)

    def _fill(self, wire: Wire) -> bytearray:
        """Fill the whole memory, and return its contents."""
        model = bytearray(random.Random(4).randbytes(self.memory[1]))
        wire.write(self.memory[0], bytes(model))
        return model

    def _run(self, wire: Wire, entry: int, seconds: float) -> Stopped:
        """How a run ended. A wire that cannot halt may raise instead."""
        try:
            return wire.execute(entry, entry + STOP, seconds)
        except WireError as error:
            if wire.abilities.halts:
                raise
            return Stopped("timeout", cause=str(error))

    def _bounded(self, run: Callable[[], Stopped]) -> Stopped:
        """The result of `run`, without hanging the test if it does not return."""
        seen: list[Stopped | BaseException] = []

        def catches() -> None:
            try:
                seen.append(run())
            except BaseException as error:
                seen.append(error)

        thread = threading.Thread(target=catches, daemon=True)
        thread.start()
        thread.join(self.patience)
        assert seen, f"it hangs: {self.patience:g} s for a program that was given {self.seconds:g} s"
        if isinstance(seen[0], BaseException):
            raise seen[0]
        return seen[0]

    def _again(self, wire: Wire) -> None:
        """Reset after a program that did not end, if the wire can."""
        if wire.abilities.resets:
            wire.reset()

    def _adds(self, wire: Wire, entry: int, first: int, second: int) -> None:
        """Write the program that adds, run it, and check its sum."""
        wire.write(entry, self.programs.adds)
        wire.write(entry + WORDS, self._words(first, second, 0))
        stopped = wire.execute(entry, entry + STOP, self.patience)
        assert stopped.reason == "stop" and stopped.pc in (entry + STOP, None), stopped
        assert wire.read(entry + WORDS, 12) == self._words(first, second, first + second)

    def _opens_and_works(self) -> None:
        """Open another wire to the board, and run a program."""
        wire = self.open()
        try:
            self._again(wire)
            self._adds(wire, self._entry(), 8, 9)
        finally:
            wire.close()


class FlashContract:
    """Tests of a wire that can write flash (`Flashing`), which they overwrite. Say in `open` how to open the wire.

    Every test erases `blocks` blocks, or none; set fewer regions in `within` if not all of them may be overwritten."""

    blocks = 3

    def open(self) -> Wire:
        """A wire to a halted board."""
        raise NotImplementedError("override `open` to open your wire")

    def within(self, regions: Sequence[FlashRegion]) -> Sequence[FlashRegion]:
        """The flash that may be overwritten."""
        return regions

    @pytest.fixture
    def wire(self) -> Iterator[Wire]:
        """A test's wire."""
        wire = self.open()
        yield wire
        wire.close()

    def test_it_has_flash_in_blocks(self, wire: Wire) -> None:
        """In ascending order, without overlaps; asking again gives the same."""
        assert isinstance(wire, Flashing)
        regions = wire.flash()
        assert regions and wire.flash() == regions
        assert all(one.start >= 0 and one.size > 0 and one.block > 0 and one.size % one.block == 0 for one in regions)
        assert all(one.end <= other.start for one, other in zip(regions, regions[1:], strict=False))

    def test_blocks_hold_what_was_written_and_no_other_changes(self, wire: Wire) -> None:
        """Of each region: one, and some that are not next to each other."""
        assert isinstance(wire, Flashing)
        source = random.Random(5)
        for region in self.within(wire.flash()):
            before = wire.read(region.start, min(region.size, 8 * region.block))
            places = list(range(region.start, region.start + len(before), region.block))[::2][: self.blocks]
            parts = [(at, _content(source, region.block)) for at in places]
            wire.program(parts)
            model = bytearray(before)
            for at, content in parts:
                model[at - region.start : at - region.start + len(content)] = content
            assert wire.read(region.start, len(model)) == model

    def test_what_was_written_is_written_over(self, wire: Wire) -> None:
        """Blocks are erased first: a bit that is 0 becomes 1 again."""
        assert isinstance(wire, Flashing)
        region = self.within(wire.flash())[0]
        for content in (bytes(region.block), b"\xff" * region.block, b"\x55" * region.block, b"\xaa" * region.block):
            wire.program([(region.start, content)])
            assert wire.read(region.start, region.block) == content

    def test_what_is_no_block_is_refused(self, wire: Wire) -> None:
        """A part of one, one beside its place, and one where no flash is; nothing changes."""
        assert isinstance(wire, Flashing)
        region = self.within(wire.flash())[0]
        before = wire.read(region.start, region.block)
        for at, size in ((region.start, region.block - 1), (region.start + 4, region.block), (region.start - region.block - 4, region.block)):
            with pytest.raises(FlashError):
                wire.program([(at, bytes(size))])
            wire.reset()
        assert wire.read(region.start, region.block) == before

    def test_nothing_is_nothing(self, wire: Wire) -> None:
        """Writing no blocks works."""
        assert isinstance(wire, Flashing)
        wire.program([])


def _content(source: random.Random, size: int) -> bytes:
    """Random bytes, and some with a meaning in a protocol."""
    return (METACHARACTERS + source.randbytes(size))[:size]
