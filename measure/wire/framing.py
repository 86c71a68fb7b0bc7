"""Encodes frames for a byte stream, and finds them among other bytes. docs/wires.md has a table of them.

Nothing here waits, opens a line or interprets frames.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

START, ESCAPE, FLIP = 0x7E, 0x7D, 0x20
HEAD = struct.Struct("<BIIH")
SUM = struct.Struct("<I")
LARGEST = 4096
"""The largest body, in bytes, that a receiver here accepts."""

_ESCAPED = bytes((ESCAPE, ESCAPE ^ FLIP)), bytes((ESCAPE, START ^ FLIP))


@dataclass(frozen=True, slots=True)
class Frame:
    """kind: what it requests or answers. session, number: of the request, repeated by its answer; 32 bits each. body: at most 65,535 bytes."""

    kind: int
    session: int
    number: int
    body: bytes = b""


def encoded(frame: Frame) -> bytes:
    """The bytes of a frame on the line: a start marker, then header, body and CRC-32, escaped. No other byte is a start marker."""
    plain = HEAD.pack(frame.kind, frame.session, frame.number, len(frame.body)) + frame.body
    plain += SUM.pack(zlib.crc32(plain))
    return bytes((START,)) + plain.replace(bytes((ESCAPE,)), _ESCAPED[0]).replace(bytes((START,)), _ESCAPED[1])


class Receiver:
    """Finds frames in received bytes. A start marker always begins a frame, so that any damage costs at most one more frame."""

    def __init__(self, largest: int = LARGEST) -> None:
        self.damaged = 0
        """Frames that ended too early or with a wrong checksum."""
        self._largest = largest
        self._plain = bytearray()
        self._inside = self._escaped = False

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by these bytes, in order."""
        found = []
        for index, part in enumerate(data.split(bytes((START,)))):
            if index:
                self._begin()
            frame = self._take(part) if self._inside else None
            if frame is not None:
                found.append(frame)
        return found

    def _begin(self) -> None:
        self.damaged += self._inside
        self._plain.clear()
        self._inside, self._escaped = True, False

    def _take(self, part: bytes) -> Frame | None:
        for position, piece in enumerate(part.split(bytes((ESCAPE,)))):
            self._escaped = self._escaped or position > 0
            if piece and self._escaped:
                piece, self._escaped = bytes((piece[0] ^ FLIP,)) + piece[1:], False
            self._plain += piece
        if len(self._plain) < HEAD.size:
            return None
        kind, session, number, size = HEAD.unpack_from(self._plain)
        end = HEAD.size + size
        if size <= self._largest and len(self._plain) < end + SUM.size:
            return None
        self._inside = False
        if size > self._largest or SUM.unpack_from(self._plain, end)[0] != zlib.crc32(self._plain[:end]):
            self.damaged += 1
            return None
        return Frame(kind, session, number, bytes(self._plain[HEAD.size : end]))
