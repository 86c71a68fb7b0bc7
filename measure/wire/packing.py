"""Compresses bytes for a slow line: repetitions refer to recent bytes. Machine code of unrolled loops becomes half as long.

    0nnnnnnn                  n + 1 literal bytes follow
    10nnnnnn oooooooo         copy n + 3 bytes from o + 1 back
    11nnnnnn oooooooo oooooooo    copy n + 4 bytes from o back, low byte first

Parts are unpacked consecutively, so a copy may reach into earlier ones.
"""

from __future__ import annotations

from collections import defaultdict

LITERALS, COPY = 128, 64
NEAR_LEAST, FAR_LEAST = 3, 4
NEAR, FAR = 256, 0xFFFF  # bytes back
LOOKED_AT = 24  # earlier places to compare


def packed(data: bytes, most: int) -> list[tuple[int, bytes]]:
    """Parts of up to `most` (at least 130) packed bytes, each with the place in `data` where its bytes begin."""
    parts, tokens, start, at = [], bytearray(), 0, 0
    for end, token in _tokens(data):
        if len(tokens) + len(token) > most:
            parts.append((start, bytes(tokens)))
            tokens, start = bytearray(), at
        tokens += token
        at = end
    return [*parts, (start, bytes(tokens))] if tokens else parts


def _tokens(data: bytes) -> list[tuple[int, bytes]]:
    """Tokens, each with the place after its bytes."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    found: list[tuple[int, bytes]] = []
    at = literal = 0
    while at < len(data):
        saved, length, back = _copy(data, at, places)
        if saved > 0 and _copy(data, at + 1, places)[0] <= saved + 1:
            found += _as_they_are(data, literal, at)
            found.append((at + length, _named(length, back)))
        else:
            length = 1
        for place in range(at, at + length):
            places[data[place : place + NEAR_LEAST]].append(place)
        at += length
        literal = at if length > 1 else literal
    return found + _as_they_are(data, literal, len(data))


def _copy(data: bytes, at: int, places: defaultdict[bytes, list[int]]) -> tuple[int, int, int]:
    """The copy that saves the most here: bytes saved (0 for none), its length, and how far back it begins."""
    best = (0, 0, 0)
    for place in reversed(places.get(data[at : at + NEAR_LEAST], [])[-LOOKED_AT:]):
        back = at - place
        if back > FAR:
            break
        near = back <= NEAR
        most = min(COPY - 1 + (NEAR_LEAST if near else FAR_LEAST), len(data) - at)
        length = _alike(data, place, at, most)
        if length >= (NEAR_LEAST if near else FAR_LEAST):
            best = max(best, (length - (2 if near else 3), length, back), key=lambda one: one[0])
    return best


def _alike(data: bytes, place: int, at: int, most: int) -> int:
    length = NEAR_LEAST
    while length < most and data[place + length] == data[at + length]:
        length += 1
    return min(length, most)


def _named(length: int, back: int) -> bytes:
    if back <= NEAR and length - NEAR_LEAST < COPY:
        return bytes((0x80 | length - NEAR_LEAST, back - 1))
    return bytes((0xC0 | length - FAR_LEAST, back & 0xFF, back >> 8))


def _as_they_are(data: bytes, start: int, end: int) -> list[tuple[int, bytes]]:
    pieces = [(at, min(at + LITERALS, end)) for at in range(start, end, LITERALS)]
    return [(stop, bytes((stop - at - 1,)) + data[at:stop]) for at, stop in pieces]
