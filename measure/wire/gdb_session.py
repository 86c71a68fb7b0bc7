"""Requests and answers over a line to a GDB server: acknowledgements, retransmission, console text in between, and time limits."""

from __future__ import annotations

import time

from ansor.measure.wire.gdb_link import Link
from ansor.measure.wire.gdb_packets import BREAK, LIMIT, Decoder, Piece, framed
from ansor.measure.wire.wire import WireError

TRIES = 6
QUIET = 0.05
"""Seconds of silence after which no earlier answer is still in flight."""


class Session:
    """One connection. After a WireError its state is unknown: open another one.

    heard: whether anything came; hung_up: whether the line broke.
    Counts: `raw` bytes both ways, packets that were `repeated`, and that came `damaged`. acks: whether packets are acknowledged.
    """

    def __init__(self, link: Link, seconds: float) -> None:
        self.acks, self.seconds = True, seconds
        self.heard = self.hung_up = False
        self.raw = self.repeated = self.damaged = 0
        self._link, self._decoder = link, Decoder()

    def ask(self, data: bytes, seconds: float | None = None, heard: bytearray | None = None) -> bytes:
        """The answer to a packet. `heard` collects the console text before it, up to `LIMIT`."""
        limit = self.seconds if seconds is None else seconds
        self._drop()
        self._send(framed(data))
        end, sent, taken = time.monotonic() + limit, 1, not self.acks
        nudge = time.monotonic() + limit / 4
        bad = self.damaged
        while True:
            piece = self._piece(min(end, nudge) if self.acks else end)
            if time.monotonic() >= end and (piece is None or piece.kind != "packet" or piece.data.startswith(b"O")):
                raise WireError(f"no answer to {_shown(data)} in {limit:g} s")
            if piece is None or piece.kind == "damaged":
                nudge = self._again(bad, limit) if taken or piece is not None else end
            elif piece.kind == "ack":
                taken = True
            elif piece.kind == "nack" and self.acks:
                sent = self._repeat(data, sent)
            elif piece.kind == "packet" and self._receipt() and taken and not _is_text(piece.data, heard):
                if sent > 1 or self.damaged > bad:
                    self.settle()
                return piece.data

    def start(self, data: bytes) -> None:
        """Send a request that is answered once the program stops."""
        self._drop()
        self._send(framed(data))

    def stopped(self, seconds: float) -> bytes | None:
        """The answer to `start`; None if there is none yet."""
        end, bad = time.monotonic() + seconds, self.damaged
        while (piece := self._piece(end)) is not None:
            if piece.kind == "damaged":
                self._again(bad, seconds)
            elif piece.kind == "nack" and self.acks:
                raise WireError("the command to run arrived damaged; it is not repeated, since it may have begun")
            elif piece.kind == "packet" and self._receipt() and not _is_text(piece.data, None):
                return piece.data
            elif time.monotonic() >= end:
                return None
        return None

    def interrupt(self) -> None:
        """Ask for a halt."""
        self._send(BREAK)

    def settle(self) -> None:
        """Wait until no more bytes arrive: a request sent twice is answered twice."""
        end = time.monotonic() + 20 * QUIET
        while time.monotonic() < end and self._piece(time.monotonic() + QUIET) is not None:
            self._receipt()

    def greet(self) -> None:
        """Acknowledge what an earlier peer may not have acknowledged."""
        self._send(b"+")

    def close(self) -> None:
        """Close the line."""
        self._link.close()

    def _drop(self) -> None:
        """Drop unsolicited bytes."""
        dropped, piece = 0, self._piece(0)
        while piece is not None:
            dropped += len(piece.data) + 4
            if dropped > LIMIT:
                raise WireError(f"the GDB server sends without being asked: {dropped} bytes")
            if piece.kind == "packet":
                self._receipt()
            piece = self._piece(0)

    def _again(self, bad: int, seconds: float) -> float:
        """Request the last packet again; returns until when to wait for it."""
        if not self.acks:
            raise WireError("a damaged packet came, and the GDB server does not keep it to send it again; add `ack=1`")
        if self.damaged - bad > TRIES:
            raise WireError(f"{self.damaged - bad} damaged packets came, one after another")
        self._send(b"-")
        return time.monotonic() + seconds / 4

    def _repeat(self, data: bytes, sent: int) -> int:
        """Resend a packet; returns how often it has been sent."""
        if sent == TRIES:
            raise WireError(f"{_shown(data)} arrived damaged {TRIES} times")
        self.repeated += 1
        self._send(framed(data))
        return sent + 1

    def _receipt(self) -> bool:
        """Acknowledge a packet."""
        if self.acks:
            self._send(b"+")
        return True

    def _send(self, data: bytes) -> None:
        try:
            self._link.send(data, self.seconds)
        except WireError:
            self.hung_up = True
            raise
        self.raw += len(data)

    def _piece(self, end: float) -> Piece | None:
        """The next piece received until `end`; bytes already received always count."""
        while (piece := self._decoder.take()) is None:
            left = end - time.monotonic()
            try:
                data = self._link.receive(max(left, 0))
            except WireError:
                self.hung_up = True
                raise
            self.heard = self.heard or bool(data)
            if not data and left <= 0:
                return None
            self._decoder.feed(data)
            self.raw += len(data)
        self.damaged += piece.kind == "damaged"
        return piece


def _is_text(data: bytes, heard: bytearray | None) -> bool:
    """Whether a packet is console text, which is added to `heard`."""
    if not data.startswith(b"O") or data == b"OK":
        return False
    if heard is not None and len(heard) < LIMIT:
        heard += text(data[1:])
    return True


def text(data: bytes) -> bytes:
    """Decode hexadecimal digits; anything else is returned unchanged."""
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return data


def _shown(data: bytes) -> str:
    """The beginning of a packet, for error messages."""
    return repr(data[:24].decode("ascii", "backslashreplace"))
