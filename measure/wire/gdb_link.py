"""The line to a GDB server: TCP or a serial port. Sends and receives bytes, each with a time limit."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from typing import Any, Protocol

from ansor.measure.wire.wire import WireError

PIECE = 1 << 16
CONNECTING = 5.0


class Link(Protocol):
    """A line. All methods raise WireError when it breaks; `close` may be called from another thread and ends waits."""

    def send(self, data: bytes, seconds: float) -> None:
        """Send all of it, or raise."""

    def receive(self, seconds: float) -> bytes:
        """The received bytes; b"" if none came in time."""

    def close(self) -> None:
        """Close the line."""


class TcpLink:
    """A connection to a port."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=CONNECTING)
        except OSError as error:
            raise WireError(f"nothing answers at {host}:{port} ({error.strerror or error}): is the GDB server running?") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes, seconds: float) -> None:
        """See `Link`."""
        try:
            self._socket.settimeout(max(seconds, 0.001))
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"the GDB server no longer accepts data ({error.strerror or error})") from None

    def receive(self, seconds: float) -> bytes:
        """See `Link`."""
        try:
            self._socket.settimeout(seconds)
            data = self._socket.recv(PIECE)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise WireError(f"the connection to the GDB server broke ({error.strerror or error})") from None
        if not data:
            raise WireError("the GDB server ended the connection")
        return data

    def close(self) -> None:
        """See `Link`."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _plainly(error: Exception) -> str:
    """The system's message alone; pyserial repeats it inside a sentence of its own."""
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


def _hint(url: str) -> str:
    return f"; for a TCP port write gdb://{url}" if re.fullmatch(r"[\w.-]+:\d+", url) else ""


class SerialLink:
    """A serial port, or any URL that pyserial knows."""

    WAIT = 0.05
    """The most seconds that a read blocks: only then does it notice `close`."""

    def __init__(self, url: str, baud: int) -> None:
        try:
            import serial
        except ImportError:
            raise WireError(f"{url} needs pyserial: pip install 'ansor[micro]'") from None
        try:
            self._port: Any = serial.serial_for_url(url, baudrate=baud, timeout=self.WAIT, write_timeout=CONNECTING)
        except (OSError, ValueError) as error:
            raise WireError(f"the serial port {url} cannot be opened: {_plainly(error)}{_hint(url)}") from None
        self._closed = False

    def send(self, data: bytes, seconds: float) -> None:
        """See `Link`."""
        try:
            self._port.write(data)
        except (OSError, TypeError, ValueError) as error:
            raise WireError(f"the serial port no longer accepts data ({error})") from None

    def receive(self, seconds: float) -> bytes:
        """See `Link`."""
        end = time.monotonic() + seconds
        while not self._closed:
            try:
                data: bytes = self._port.read(max(1, min(self._port.in_waiting, PIECE)))
            except (OSError, TypeError, ValueError) as error:
                raise WireError(f"the serial port broke ({error})") from None
            if data or time.monotonic() >= end:
                return data
        raise WireError("the serial port was closed")

    def close(self) -> None:
        """See `Link`."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._port.close()
