"""Carries characters to a remote bitbang server and back, over TCP. Every wait has a time limit."""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ansor.measure.wire.wire import WireError

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 10.0
"""How long a server may neither accept nor send a character."""

PIECE = 1 << 16  # characters per system call
# Servers exit if their answers block: never have more in flight than a socket buffers.
UNANSWERED = 1 << 15
ASKING_PIECE = 1 << 14
# Many answers are received in batches: each receive costs both ends more than an answer.
FEW, GATHERING_SECONDS = 4096, 5e-4


class BitbangLine:
    """A connection. Counts `sent` and `received` characters. All methods raise WireError; `close` may be called from any thread."""

    def __init__(self, host: str, port: int, silent: float = SILENT_SECONDS) -> None:
        self.name = f"{host}:{port}"
        self.sent = self.received = 0
        self._silent = silent
        self._closed = False
        self._broken = ""
        self._lock = threading.Lock()
        try:
            self._socket = socket.create_connection((host, port), CONNECT_SECONDS)
        except OSError as error:
            raise WireError(f"asked for a remote bitbang server at {self.name}: {error}; is it running, on this port?") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)

    def exchange(self, characters: bytes) -> NDArray[np.uint8]:
        """Send all of them; returns the answers, 0 or 1 for each `R`. After a failure nothing more is sent: the server's state is unknown."""
        with self._lock:
            if self._broken:
                raise WireError(f"the connection to the remote bitbang server at {self.name} is closed: {self._broken}; open it again")
            try:
                return self._exchange(characters)
            except BaseException as error:
                self._broken = self._broken or f"it was interrupted ({type(error).__name__})"
                raise

    def _exchange(self, characters: bytes) -> NDArray[np.uint8]:
        view, start, end = memoryview(characters), 0, 0
        asked, answers = 0, bytearray()
        expected = characters.count(b"R")
        waited = time.monotonic()
        while start < len(view) or len(answers) < expected:
            if start == end < len(view) and asked - len(answers) < UNANSWERED:
                end = min(start + (ASKING_PIECE if expected else PIECE), len(view))
                asked += characters.count(b"R", start, end)
            sent, came = self._move(view[start:end])
            start += sent
            answers += came
            if len(answers) > asked:
                break
            if 0 < len(came) < FEW < expected - len(answers):
                time.sleep(GATHERING_SECONDS)
            if sent or came:
                waited = time.monotonic()
            elif time.monotonic() - waited > self._silent:
                raise self._failure(f"was silent for {self._silent:g} seconds; does it serve another client, or is the simulator stopped?")
        return self._bits(answers, expected)

    def close(self) -> None:
        """Disconnect from the server, so that it can serve other clients. Waiting calls in other threads raise WireError."""
        if self._closed:
            return
        with suppress(OSError):
            self._socket.send(b"Q")
        self._closed = True
        self._broken = self._broken or "it was released"
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._socket.close()

    def _move(self, rest: memoryview) -> tuple[int, bytes]:
        """Wait briefly; returns how much was sent, and what came."""
        if self._closed:
            raise self._failure("was closed here while something waited for it")
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if rest else 0))
        sent, came = 0, b""
        try:
            for _, events in poll.poll(200):
                if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    came = self._socket.recv(PIECE)
                    self._acknowledge()
                    if not came:
                        raise self._failure("ended the connection; its own output may say why")
                if events & select.POLLOUT:
                    sent = self._socket.send(rest)
        except BlockingIOError:
            pass
        except (OSError, ValueError) as error:
            raise self._failure(f"is gone ({error})") from error
        self.sent += sent
        self.received += len(came)
        return sent, came

    def _acknowledge(self) -> None:
        """Acknowledge at once: servers send few characters at a time and wait for the ACK, which the system delays by 40 ms by default."""
        if hasattr(socket, "TCP_QUICKACK"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _bits(self, answers: bytearray, expected: int) -> NDArray[np.uint8]:
        bits = np.frombuffer(bytes(answers), np.uint8) - np.uint8(ord("0"))
        if len(bits) != expected or (bits > 1).any():
            raise self._failure(f"answered {bytes(answers[:40])!r} where {expected} characters 0 and 1 were expected; is this a remote bitbang port?")
        return bits

    def _failure(self, found: str) -> WireError:
        self._broken = self._broken or f"it {found}"
        return WireError(f"the remote bitbang server at {self.name} {found}")
