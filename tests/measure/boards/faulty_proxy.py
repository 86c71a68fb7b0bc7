"""A TCP proxy between a wire and its simulator that loses, damages, cuts, delays and repeats bytes, is silent for a while, or breaks the connection."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TypeVar

PIECE = 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Faults:
    """The probability of each fault, for every piece of at most 1024 bytes. seconds: the longest delay or silence."""

    drop: float = 0.0
    flip: float = 0.0
    split: float = 0.0
    delay: float = 0.0
    repeat: float = 0.0
    silence: float = 0.0
    cut: float = 0.0
    seconds: float = 0.05


NONE = Faults()
KINDS = tuple(one.name for one in fields(Faults) if one.name != "seconds")


def random_faults(source: random.Random) -> Faults:
    """One to three kinds, from rare to frequent."""
    worst = source.choice((0.003, 0.02, 0.1))
    chosen = source.sample(KINDS, source.choice((1, 1, 2, 3)))
    return Faults(**{kind: worst * (0.2 if kind in ("silence", "cut") else 1.0) for kind in chosen}, seconds=source.choice((0.01, 0.1, 1.0)))


class FaultyProxy:
    """Listens at `port`, and forwards to the port `behind` of this machine; that and `faults` may be changed at any time. seen: how often each occurred."""

    def __init__(self, behind: int, seed: int) -> None:
        self.faults, self.seen = NONE, Counter[str]()
        self.behind, self._source = behind, random.Random(seed)
        self._lock, self._closed = threading.Lock(), False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.behind), 5.0)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._forward, args=(near, far), daemon=True).start()
            threading.Thread(target=self._back, args=(far, near), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(PIECE):
                for part in self._damaged(data):
                    far.sendall(part)
        with contextlib.suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            far.shutdown(socket.SHUT_WR)

    def _back(self, far: socket.socket, near: socket.socket) -> None:
        """The server's output is always read to its end: Spike ends if it cannot write."""
        with contextlib.suppress(OSError):
            while data := far.recv(PIECE):
                with contextlib.suppress(OSError):
                    for part in self._damaged(data):
                        near.sendall(part)
                    continue
                with contextlib.suppress(OSError):
                    near.shutdown(socket.SHUT_RDWR)
        for one in (near, far):  # closing alone does not wake threads that wait for it
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _damaged(self, data: bytes) -> Iterator[bytes]:
        """The parts of a piece that are forwarded. Raises OSError if the connection breaks."""
        faults, piece = self.faults, bytearray(data)
        if faults is NONE:
            yield data
            return
        if self._happens("cut", faults.cut):
            raise OSError("cut")
        if self._happens("silence", faults.silence):
            time.sleep(self._drawn(lambda source: source.random() * faults.seconds))
            return
        if self._happens("drop", faults.drop):
            start = self._drawn(lambda source: source.randrange(len(piece)))
            del piece[start : start + self._drawn(lambda source: source.choice((1, 2, 64)))]
        if piece and self._happens("flip", faults.flip):
            at, bit = self._drawn(lambda source: (source.randrange(len(piece)), source.randrange(8)))
            piece[at] ^= 1 << bit
        if self._happens("delay", faults.delay):
            time.sleep(self._drawn(lambda source: source.random() * faults.seconds))
        if self._happens("split", faults.split):
            cut = self._drawn(lambda source: source.randrange(len(piece) + 1))
            yield bytes(piece[:cut])
            time.sleep(0.001)
            yield bytes(piece[cut:])
        else:
            yield bytes(piece)
        if self._happens("repeat", faults.repeat):
            yield bytes(piece)

    def _happens(self, kind: str, share: float) -> bool:
        with self._lock:
            found = self._source.random() < share
            self.seen[kind] += found
        return found

    def _drawn(self, how: Callable[[random.Random], T]) -> T:
        with self._lock:
            return how(self._source)
