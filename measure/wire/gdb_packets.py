"""Packets of the GDB remote protocol: `$data#sum`, escapes, run lengths, and bytes between packets. Nothing here reads or writes a line.

The protocol is described in "Debugging with GDB", appendix "Remote Protocol".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from ansor.measure.wire.wire import WireError

Kind = Literal["packet", "ack", "nack", "damaged"]

LIMIT = 1 << 20
"""The most bytes of a packet, and of noise between packets."""

BETWEEN = re.compile(rb"[$+-]")
SPECIAL = re.compile(rb"[#$}*]")
BREAK = b"\x03"


@dataclass(frozen=True, slots=True)
class Piece:
    """What was received: a packet with its data, a positive or negative acknowledgement, or a packet with a wrong checksum."""

    kind: Kind
    data: bytes = b""


def framed(data: bytes) -> bytes:
    """A packet of data that is already escaped."""
    return b"$%b#%02x" % (data, sum(data) & 0xFF)


def escaped(data: bytes) -> bytes:
    """Binary data, escaped for a packet."""
    return SPECIAL.sub(lambda found: bytes((0x7D, found[0][0] ^ 0x20)), data)


def plain(data: bytes) -> bytes | None:
    """Data without escapes and run lengths; None if they are malformed or the data becomes longer than `LIMIT`."""
    if b"}" not in data and b"*" not in data:
        return data
    made, at = bytearray(), 0
    while at < len(data):
        byte, at = data[at], at + 1
        if byte not in b"}*":
            made.append(byte)
            continue
        if at == len(data) or (byte == ord("*") and not (made and 32 <= data[at] <= 126)):
            return None
        made += bytes((data[at] ^ 0x20,)) if byte == ord("}") else made[-1:] * (data[at] - 29)
        at += 1
        if len(made) > LIMIT:
            return None
    return bytes(made)


@dataclass(slots=True)
class Decoder:
    """Splits incoming bytes into pieces. Raises WireError if more than `LIMIT` bytes do not form a piece."""

    _bytes: bytearray = field(default_factory=bytearray)
    _looked: int = 0
    _noise: int = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._bytes += data

    def take(self) -> Piece | None:
        """The next piece; None if more bytes are needed."""
        while self._bytes:
            if self._bytes[0] != ord("$"):
                if (piece := self._between()) is not None:
                    return piece
                continue
            end = self._bytes.find(b"#", self._looked)
            if end < 0 or len(self._bytes) < end + 3:
                self._looked = max(0, len(self._bytes) - 1) if end < 0 else end
                if len(self._bytes) > 2 * LIMIT:
                    raise WireError(f"a packet of more than {LIMIT} bytes came")
                return None
            return self._packet(end)
        return None

    def _between(self) -> Piece | None:
        """An acknowledgement, or None after dropping noise."""
        byte = self._bytes[0]
        if byte in b"+-":
            del self._bytes[0]
            return Piece("ack" if byte == ord("+") else "nack")
        found = BETWEEN.search(self._bytes)
        dropped = found.start() if found else len(self._bytes)
        del self._bytes[:dropped]
        self._noise += dropped
        if self._noise > LIMIT:
            raise WireError(f"more than {LIMIT} bytes came that do not form a packet of the GDB protocol")
        return None

    def _packet(self, end: int) -> Piece:
        """The packet whose data ends before `end`. A `$` in it starts a new packet: the previous one lost its end."""
        start = self._bytes.rfind(b"$", 0, end) + 1
        data, digits = bytes(self._bytes[start:end]), bytes(self._bytes[end + 1:end + 3])
        del self._bytes[:end + 3]
        self._looked = 0
        if digits.lower() != b"%02x" % (sum(data) & 0xFF) or (decoded := plain(data)) is None:
            return Piece("damaged")
        self._noise = 0
        return Piece("packet", decoded)
