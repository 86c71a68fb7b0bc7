"""The wire to a debug module: texts, runs, failures; and the contract, against a simulator of RISC-V processors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansor.errors import DeviceError
from ansor.measure.wire import debug_module
from ansor.measure.wire.bitbang import open_bitbang
from ansor.measure.wire.wire import Abilities, Stopped, Wire, WireError
from tests.measure.wire.fake_debug_module import BASE, EBREAK, FakeDebugModule, FakeServer, serving

STOP = BASE + 0x40


@pytest.mark.parametrize("text", ["bitbang:", "bitbang://", "bitbang://host", "bitbang://:9", "bitbang://host:x", "bitbang://host:99999", "gdb://host:1", "bitbang://h:1/x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(DeviceError, match="write bitbang://HOST:PORT"):
        open_bitbang(text)


@pytest.mark.parametrize("bits", [32, 64])
def test_it_says_what_it_is(bits: int) -> None:
    with serving(FakeServer(FakeDebugModule(bits=bits))) as text:
        wire: Wire = open_bitbang(text)
        assert wire.name == text and wire.abilities == Abilities(halts=True, resets=True, chunk=1 << 16, bits=bits)
        wire.close()


def test_a_run_ends_at_its_stop() -> None:
    chip = FakeDebugModule()
    with serving(FakeServer(chip)) as text:
        wire = open_bitbang(text)
        assert wire.execute(BASE, STOP, 5.0) == Stopped("stop", STOP)
        assert (chip.registers[8], chip.registers[9]) == (0x1234, 0x5678) and chip.csrs[0x7B0] >> 12 & 8 and chip.csrs[0x7B0] & 3 == 3
        assert wire.traffic.sent == wire.traffic.received == 0 < wire.traffic.overhead
        wire.close()


def test_another_ebreak_is_a_trap() -> None:
    chip = FakeDebugModule()
    with serving(FakeServer(chip)) as text:
        wire = open_bitbang(text)
        wire.write(BASE + 8, EBREAK.to_bytes(4, "little"))
        assert wire.execute(BASE, STOP, 5.0) == Stopped("trap", BASE + 8, "ebreak")
        wire.close()


def test_a_run_without_an_end_is_halted() -> None:
    chip = FakeDebugModule()
    with serving(FakeServer(chip)) as text:
        wire = open_bitbang(text)
        stopped = wire.execute(STOP + 4, STOP, 0.05)
        assert (stopped.reason, stopped.pc, chip.halted) == ("timeout", BASE + len(chip.memory) - 4, True)
        chip.csrs.update({0x305: 0x1000, 0x342: 2, 0x341: BASE})
        assert wire.execute(0x1000, STOP, 0.05) == Stopped("timeout", 0x1000, "at its trap handler: mcause 0x2, mepc 0x80000000")
        assert wire.execute(BASE, STOP, 5.0).reason == "stop"
        wire.close()


def test_memory_that_cannot_be_written_has_a_hardware_breakpoint() -> None:
    chip = FakeDebugModule(fixed=(STOP, STOP + 16))
    with serving(FakeServer(chip)) as text:
        wire = open_bitbang(text)
        assert wire.execute(BASE, STOP, 5.0) == Stopped("stop", STOP)
        assert chip.csrs[0x7A1] == 0
        wire.close()


def test_a_reset_connects_again_where_the_wire_broke() -> None:
    server = FakeServer(FakeDebugModule())
    with serving(server) as text:
        wire = open_bitbang(text)
        wire.write(BASE, b"kept")
        before = wire.traffic
        server.cut_after = server.characters
        with pytest.raises(WireError):
            wire.read(BASE, 4)
        with pytest.raises(WireError, match="is closed"):
            wire.read(BASE, 4)
        server.cut_after = None
        wire.reset()
        assert wire.read(BASE, 4) == b"kept" and server.connections == 2
        assert wire.traffic.sent == before.sent and wire.traffic.overhead > before.overhead
        wire.close()


@pytest.mark.parametrize("after", range(0, 12000, 397))
def test_a_server_that_is_silent_or_gone_at_any_time_is_an_error(after: int) -> None:
    for server in (FakeServer(FakeDebugModule(), silent_after=after), FakeServer(FakeDebugModule(), cut_after=after)):
        with serving(server) as text, pytest.raises(WireError):
            wire = open_bitbang(text, silent=0.05)
            try:
                wire.write(BASE, bytes(range(64)))
                wire.execute(BASE, STOP, 5.0)
                while True:
                    wire.read(BASE, 64)
            finally:
                wire.close()


def test_two_wires_to_one_server_are_one_too_many() -> None:
    with serving(FakeServer(FakeDebugModule())) as text:
        wire = open_bitbang(text)
        with pytest.raises(WireError, match="does it serve another client"):
            open_bitbang(text, silent=0.1)
        wire.write(BASE, b"still")
        assert wire.read(BASE, 5) == b"still"
        wire.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(debug_module, "ANSWER_SECONDS", 1.0)
    yield
