"""The monitor as a process, behind pipes and terminals, and the texts that open lines."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
import tty

import pytest

from ansor.errors import DeviceError
from ansor.measure.wire.monitor_build import BOARDS, built_process
from ansor.measure.wire.process import open_process
from ansor.measure.wire.serial import SerialAddress, SerialWire, open_serial, parse_address
from ansor.measure.wire.wire import WireError
from ansor.testing.wire_contract import WireContract
from ansor.testing.wire_programs import AARCH64, STOP, X86_64

pytestmark = pytest.mark.compiler
PROGRAMS = AARCH64 if platform.machine() in ("aarch64", "arm64") else X86_64


class TestProcess(WireContract):
    memory = (0x40008000, 0x8000)
    programs = PROGRAMS
    nowhere = 0x10

    def open(self) -> SerialWire:
        return open_process("process:")


def test_a_terminal_is_a_line() -> None:
    """Through pyserial, as a device would be."""
    master, slave = os.openpty()
    tty.setraw(slave)
    tty.setraw(master)
    process = subprocess.Popen([built_process()], stdin=master, stdout=master, start_new_session=True)
    try:
        for text in (os.ttyname(slave), f"serial:{os.ttyname(slave)}?baud=57600", f"serial://{os.ttyname(slave)}?baud=115200"):
            wire = open_serial(text)
            data = bytes(range(256)) * 8
            wire.write(wire.facts.free[0], data)
            assert wire.read(wire.facts.free[0], len(data)) == data and wire.name == text
            wire.close()
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_a_process_that_died_is_an_error_at_once_and_a_reset_starts_another() -> None:
    wire = open_process()
    base = wire.facts.free[0]
    wire.write(base, PROGRAMS.loops)
    ended = threading.Timer(0.2, lambda: wire._link.port.close())
    ended.start()
    with pytest.raises(WireError, match="closed"):
        wire.execute(base, base + STOP, 30.0)
    ended.join()
    wire.reset()
    assert wire.read(base, 2) == b"\0\0"
    wire.close()


def test_texts_say_what_is_opened() -> None:
    assert parse_address("serial:/dev/ttyUSB0?baud=921600&reset=rts") == SerialAddress("/dev/ttyUSB0", 921600, "rts")
    assert parse_address("/dev/ttyACM0") == SerialAddress("/dev/ttyACM0")
    assert parse_address("socket://localhost:4000") == SerialAddress("socket://localhost:4000")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serial:", "no port is named; write serial:/dev/ttyUSB0"),
        ("serial:/dev/x?speed=3", "it has no option 'speed'"),
        ("serial:/dev/x?baud=fast", "baud=fast is not a speed"),
        ("serial:/dev/x?reset=power", "reset=power is not a line that resets a board"),
        ("socket://localhost", "host or port is missing"),
        ("socket://h:1?reset=dtr", "a TCP connection has no line that resets a board"),
        ("socket://h:99999999", "write socket://host:port"),
    ],
)
def test_texts_that_say_nothing_useful(text: str, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        open_serial(text)


def test_lines_that_are_not_there() -> None:
    with pytest.raises(WireError, match="it cannot be opened"):
        open_serial("serial:/dev/ansor-has-none")
    with pytest.raises(WireError, match="nothing listens there"):
        open_serial("socket://127.0.0.1:1")
    with pytest.raises(DeviceError, match="does not name a process"):
        open_process("process:many")


def test_addresses_that_the_board_does_not_have() -> None:
    wire = open_process()
    with pytest.raises(WireError, match="the board's addresses have 64 bits"):
        wire.read(2**64 - 1, 2)
    wire.close()


def test_boards_have_names_of_their_own() -> None:
    assert all(board.name == name and set(board.sources) and board.chunk % 256 == 0 for name, board in BOARDS.items())
