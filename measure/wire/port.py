"""Byte streams to a monitor: serial ports, TCP connections, pipes of a process."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from ansor.measure.wire.wire import WireError

PART_BYTES = 1 << 16
T = TypeVar("T")

SLICE_SECONDS = 0.05
"""How long a wait blocks before it checks whether the line was closed."""

SEND_SECONDS = 10.0
CLOSING_SECONDS = 2.0


class Port(Protocol):
    """Bytes to and from a monitor. All methods raise WireError once the line is gone."""

    def send(self, data: bytes) -> None:
        """Send all of it, or as much as the line accepts: the caller sends lost bytes again."""

    def receive(self, seconds: float) -> bytes:
        """The received bytes, as soon as there are any; b"" if none come for that long."""

    def now(self) -> float:
        """Seconds, by the clock of `receive`."""

    def close(self) -> None:
        """Close the line. May be called from another thread, and ends waits."""


class DescriptorPort:
    """Two file descriptors. `release` is called when the line is closed."""

    def __init__(self, reader: int, writer: int, name: str, release: Callable[[], None]) -> None:
        self._reader, self._writer, self._name, self._release = reader, writer, name, release
        self._closed = False
        self._lock = threading.Lock()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def send(self, data: bytes) -> None:
        """Send it."""
        rest, deadline = memoryview(data), self.now() + SEND_SECONDS
        while rest and self._ready(self._writer, select.POLLOUT, deadline):
            with suppress(BlockingIOError):
                rest = rest[self._tried(partial(os.write, self._writer, rest[:PART_BYTES])) :]

    def receive(self, seconds: float) -> bytes:
        """See `Port`."""
        if not self._ready(self._reader, select.POLLIN, self.now() + seconds):
            return b""
        with suppress(BlockingIOError):
            found = self._tried(lambda: os.read(self._reader, PART_BYTES))
            if not found:
                raise WireError(f"{self._name}: the other side closed the line; is the board or its simulator still running?")
            return found
        return b""

    def close(self) -> None:
        """Close the line."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._release()

    def _ready(self, descriptor: int, events: int, deadline: float) -> bool:
        while True:
            if self._closed:
                raise WireError(f"{self._name} was closed")
            left = deadline - self.now()
            poll = select.poll()
            poll.register(descriptor, events)
            if poll.poll(max(0.0, min(left, SLICE_SECONDS)) * 1e3):
                return not self._closed
            if left <= 0:
                return False

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except BlockingIOError:
            raise
        except OSError as error:
            raise WireError(f"{self._name}: the line broke ({error}); is the board still there?") from error


def socket_port(host: str, port: int, name: str, seconds: float = 5.0) -> DescriptorPort:
    """A TCP connection: QEMU's `-serial tcp:...`, ser2net, a terminal server in raw mode. Raises WireError if nothing listens there."""
    try:
        connection = socket.create_connection((host, port), seconds)
    except OSError as error:
        raise WireError(f"{name}: nothing listens there ({error}); start the simulator or server first, or name another port") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return DescriptorPort(connection.fileno(), connection.fileno(), name, connection.close)


def process_port(command: Sequence[str], name: str) -> DescriptorPort:
    """A process that uses its standard input and output, and is killed when the line is closed. Raises WireError if it does not start."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0)
    except OSError as error:
        raise WireError(f"{name}: {command[0]} does not start ({error})") from error
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None and stdout is not None

    def release() -> None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(CLOSING_SECONDS)
        for pipe in (stdin, stdout):
            with suppress(OSError):
                pipe.close()

    return DescriptorPort(stdout.fileno(), stdin.fileno(), name, release)


class SerialPort:
    """What pyserial opens: a device, a pseudo-terminal, or one of its URLs. Raises WireError if it cannot."""

    def __init__(self, url: str, baud: int, name: str) -> None:
        try:
            import serial
        except ImportError as error:
            raise WireError(f"{name}: pyserial is not installed; pip install 'ansor[micro]'") from error
        self._name = name
        self._closed = False
        self._failures: tuple[type[Exception], ...] = (OSError, ValueError, TypeError, serial.SerialException)
        try:
            self._port: Any = serial.serial_for_url(url, baudrate=baud, timeout=SLICE_SECONDS, write_timeout=SEND_SECONDS)
        except self._failures as error:
            raise WireError(f"{name}: it cannot be opened ({error}); does it exist, are you allowed to use it, does another program use it?") from error

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def send(self, data: bytes) -> None:
        """Send it."""
        self._tried(lambda: self._port.write(data))

    def receive(self, seconds: float) -> bytes:
        """See `Port`. It waits for one byte, because `in_waiting` is useless on some of pyserial's lines."""
        deadline = self.now() + seconds
        while True:
            if found := self._tried(lambda: self._port.read(1)):
                return bytes(found + self._tried(lambda: self._port.read(self._port.in_waiting or 0)))
            if self.now() >= deadline:
                return b""

    def pulse(self, line: str, seconds: float = 0.1) -> None:
        """Pulse a control line, "dtr" or "rts": most boards with a USB serial chip take that as a reset."""
        for level in (True, False):
            self._tried(partial(setattr, self._port, line, level))
            time.sleep(seconds)

    def close(self) -> None:
        """Close the line."""
        self._closed = True
        with suppress(*self._failures):
            self._port.close()

    def _tried(self, call: Callable[[], Any]) -> Any:
        if self._closed:
            raise WireError(f"{self._name} was closed")
        try:
            return call()
        except self._failures as error:
            raise WireError(f"{self._name}: the line broke ({error}); is the board still there?") from error
