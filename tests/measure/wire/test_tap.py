"""A port says what it is; batches are sent again where the debug module was busy, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from ansor.measure.wire.bitbang_line import BitbangLine
from ansor.measure.wire.tap import Batch, Tap
from ansor.measure.wire.wire import WireError
from tests.measure.wire.fake_debug_module import FakeDebugModule, FakeServer, serving


@contextmanager
def tapped(chip: FakeDebugModule) -> Iterator[Tap]:
    with serving(FakeServer(chip)) as text:
        line = BitbangLine("127.0.0.1", int(text.rpartition(":")[2]), 5.0)
        try:
            yield Tap(line)
        finally:
            line.close()


def test_it_says_what_it_is() -> None:
    with tapped(FakeDebugModule(idcode=0xDEADBEEF)) as tap:
        assert (tap.idcode, tap.version, tap.address_bits) == (0xDEADBEEF, 1, 7)


@pytest.mark.parametrize("idcode", [0, 0xFFFFFFFF, 0x12345678])
def test_nothing_connected_is_seen(idcode: int) -> None:
    with pytest.raises(WireError, match=f"IDCODE 0x{idcode:08x}, which no chip has"), tapped(FakeDebugModule(idcode=idcode)):
        pass


@pytest.mark.parametrize("said", [0, 0x70, 0x01, 0x6F])
def test_another_transport_is_refused(said: int) -> None:
    with pytest.raises(WireError, match=f"not a RISC-V debug transport of specification 0.13 .DTMCS 0x{said:08x}"), tapped(FakeDebugModule(transport=said)):
        pass


@pytest.mark.parametrize("transport", [0x71, 0x1071, 0x5071, 0x61, 0x201])
def test_a_batch_reads_and_writes(transport: int) -> None:
    def build(batch: Batch) -> list[int]:
        batch.write(0x04, 0x12345678)
        first = batch.read(0x04)
        batch.write_rows(np.array([[1, 2], [3, 4]], np.uint32), (0x05, 0x04))
        return [first, batch.read(0x05), batch.read_rows(3, (0x05, 0x04)), batch.read(0x04)]

    with tapped(FakeDebugModule(transport=transport)) as tap:
        answers, places = tap.run(build)
        assert [answers.word(places[index]) for index in (0, 1, 3)] == [0x12345678, 3, 4]
        assert answers.rows(places[2], 3, 2).tolist() == [[3, 4]] * 3
        assert tap.repeated == 0


@pytest.mark.parametrize("clocks", [1, 3, 9])
def test_a_busy_module_is_asked_again_slower(clocks: int) -> None:
    with tapped(FakeDebugModule(access_clocks=clocks)) as tap:
        tap.write(0x04, 77)
        assert tap.read(0x04) == 77 and tap.repeated >= 1
        before = tap.repeated
        assert tap.read(0x04) == 77 and tap.repeated == before


def test_a_module_that_stays_busy_is_an_error() -> None:
    with tapped(FakeDebugModule(access_clocks=10**9)) as tap, pytest.raises(WireError, match="stays busy"):
        for _ in range(2):
            tap.read(0x04)


def test_a_refused_operation_is_an_error_and_the_next_one_works() -> None:
    with tapped(FakeDebugModule(refuses=(0x16,))) as tap:
        with pytest.raises(WireError, match="refused an operation .outcome 2"):
            tap.read(0x16)
        assert tap.read(0x12) == 1 << 16 | 0x380


def test_time_has_passed_when_it_returns() -> None:
    """Or else clocks would pile up before a slow server."""
    with tapped(FakeDebugModule()) as tap:
        before = tap.line.received
        tap.pass_time(1000)
        assert tap.line.received == before + 1


def test_what_is_written_once_is_written_once() -> None:
    chip = FakeDebugModule(access_clocks=4)
    with tapped(chip) as tap:
        tap.write_once(0x10, 1 | 1 << 1)
        assert tap.read(0x10) == 1 and chip.resets == 1
