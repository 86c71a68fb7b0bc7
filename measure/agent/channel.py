"""Carries bytes to an agent and back, through the pipes of a started process or over TCP. Every wait has a deadline."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

CLOSING_SECONDS = 2.0  # when its input ends, an agent ends its job, removes its folder and exits
PART_BYTES = 1 << 16


class Channel:
    """Two descriptors. `send` and `receive` raise OSError (TimeoutError when time is up) or EOFError; `interrupt`, from any thread, ends both."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._unread = bytearray()
        self._wake, self._waking = os.pipe(), threading.Lock()
        self._closed = False
        self.sent = self.received = 0
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)

    def send(self, message: bytes, deadline: float) -> None:
        """Send the whole message."""
        rest = memoryview(message)
        while rest:
            self._wait(self._writer, select.POLLOUT, deadline)
            try:
                count = os.write(self._writer, rest[:PART_BYTES])
            except BlockingIOError:
                continue
            except (BrokenPipeError, ConnectionResetError) as error:
                raise EOFError(f"the connection ended{self.said()}") from error
            self.sent += count
            rest = rest[count:]

    def receive(self, size: int, deadline: float) -> bytes:
        """Receive exactly `size` bytes."""
        while len(self._unread) < size:
            self._wait(self._reader, select.POLLIN, deadline)
            with suppress(BlockingIOError):
                part = os.read(self._reader, PART_BYTES)
                if not part:
                    raise EOFError(f"the connection ended{self.said()}")
                self.received += len(part)
                self._unread += part
        found = bytes(self._unread[:size])
        del self._unread[:size]
        return found

    def said(self) -> str:
        """More about why it ended, to append to a sentence."""
        return ""

    def interrupt(self) -> None:
        """Interrupt all waiting threads."""
        with self._waking:  # a closed descriptor may belong to another file by now
            self._closed = True
            with suppress(OSError):
                os.write(self._wake[1], b"x")

    @property
    def interrupted(self) -> bool:
        """Whether the channel was interrupted or closed: it cannot be used any more."""
        return self._closed

    def close(self) -> None:
        """Release everything. No thread may still be waiting: see `interrupt`."""
        with self._waking:
            self._closed = True
            for descriptor in self._wake:
                with suppress(OSError):
                    os.close(descriptor)
            self._wake = (-1, -1)

    def _wait(self, descriptor: int, events: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, events)
        poll.register(self._wake[0], select.POLLIN)
        left = deadline - time.monotonic()
        ready = poll.poll(max(0.0, left) * 1e3)
        if self._closed:
            raise EOFError("the device was closed")
        if not ready and left <= 0:
            raise TimeoutError("no answer in time")


class ProcessChannel(Channel):
    """An agent process, started here or by `ssh`, which uses its standard input and output. Raises OSError if it does not start."""

    def __init__(self, command: Sequence[str]) -> None:
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, open as long as the channel
        try:
            # Its own session: Ctrl-C goes to the measuring process, which then ends this one.
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, start_new_session=True, bufsize=0)
        except BaseException:
            self._complaints.close()
            raise
        assert self.process.stdin is not None and self.process.stdout is not None
        self._pipes = (self.process.stdin, self.process.stdout)
        super().__init__(self.process.stdout.fileno(), self.process.stdin.fileno())

    def said(self) -> str:
        """The end of its standard error, and how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(CLOSING_SECONDS)
        code = self.process.poll()
        ended = "" if code is None else f", status {code}"
        with suppress(OSError, ValueError):
            size = os.fstat(self._complaints.fileno()).st_size
            last = os.pread(self._complaints.fileno(), 300, max(0, size - 300)).decode("utf-8", "replace")
            if last.strip():
                ended += f": {' '.join(last.split())}"
        return ended

    def close(self) -> None:
        """Close its input, and kill the process if it does not end."""
        if self._closed and self._complaints.closed:
            return
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()
        try:
            self.process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(CLOSING_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._complaints.close()
        super().close()


class SocketChannel(Channel):
    """A connection to a listening agent. Raises OSError if nothing listens there."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((host, port), seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        super().__init__(self._socket.fileno(), self._socket.fileno())

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        super().close()
