"""How bytes reach a GDB server: over TCP, or a serial port (here a pseudo-terminal)."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from ansor.measure.wire.gdb_link import SerialLink, TcpLink
from ansor.measure.wire.wire import WireError


@pytest.fixture
def port() -> Iterator[tuple[int, str]]:
    """The board's end of a serial line, and the name of ours."""
    board, ours = os.openpty()
    yield board, os.ttyname(ours)
    for end in (board, ours):
        with contextlib.suppress(OSError):
            os.close(end)


def test_bytes_of_a_serial_port_are_those_of_the_line(port: tuple[int, str]) -> None:
    board, name = port
    link = SerialLink(name, 115_200)
    sent = bytes(range(256))
    link.send(sent, 1.0)
    assert os.read(board, 1000) == sent, "no character is special"
    os.write(board, sent)
    found = b""
    while len(found) < len(sent):
        found += link.receive(1.0)
    assert found == sent
    link.close()


def test_a_silent_serial_port_gives_nothing_after_the_time(port: tuple[int, str]) -> None:
    link = SerialLink(port[1], 115_200)
    begin = time.monotonic()
    assert link.receive(0.1) == b"" and time.monotonic() - begin >= 0.1
    link.close()


def test_whoever_waits_at_a_serial_port_that_is_closed_is_told(port: tuple[int, str]) -> None:
    link = SerialLink(port[1], 115_200)
    closing = threading.Timer(0.2, link.close)
    closing.start()
    with pytest.raises(WireError, match="the serial port (was closed|broke)"):
        link.receive(30.0)
    closing.join()
    with pytest.raises(WireError, match="the serial port no longer accepts data"):
        link.send(b"?", 1.0)


def test_a_port_that_is_none_is_said_and_tcp_gets_a_hint() -> None:
    with pytest.raises(WireError, match="the serial port /dev/none cannot be opened: No such file or directory$"):
        SerialLink("/dev/none", 115_200)
    with pytest.raises(WireError, match="; for a TCP port write gdb://localhost:3333$"):
        SerialLink("localhost:3333", 115_200)


def test_a_server_that_goes_away_is_said() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    link = TcpLink("127.0.0.1", server.getsockname()[1])
    accepted, _ = server.accept()
    assert link.receive(0.05) == b""
    accepted.close()
    with pytest.raises(WireError, match="the GDB server ended the connection|the connection to the GDB server broke"):
        link.receive(5.0)
    link.close()
    with pytest.raises(WireError, match="no longer accepts data"):
        link.send(b"?", 1.0)
    number = server.getsockname()[1]
    server.close()
    with pytest.raises(WireError, match=f"nothing answers at 127.0.0.1:{number} .*: is the GDB server running"):
        TcpLink("127.0.0.1", number)
