"""Packed bytes are those that were packed, whatever they are and however the parts are cut."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as some

from ansor.measure.wire.packing import packed

REPEATED = some.tuples(some.binary(min_size=1, max_size=9), some.integers(1, 200)).map(lambda one: one[0] * one[1])
PIECES = some.lists(some.one_of(some.binary(max_size=300), REPEATED))


def unpacked(parts: list[tuple[int, bytes]]) -> bytes:
    """What a monitor writes."""
    made = bytearray()
    for start, tokens in parts:
        assert start == len(made)
        at = 0
        while at < len(tokens):
            kind, at = tokens[at], at + 1
            if kind < 0x80:
                made += tokens[at : at + kind + 1]
                at += kind + 1
                continue
            far = kind >= 0xC0
            back = int.from_bytes(tokens[at : at + 2], "little") if far else tokens[at] + 1
            at += 2 if far else 1
            for _ in range((kind & 63) + (4 if far else 3)):
                made.append(made[-back])
    return bytes(made)


@given(PIECES, some.integers(130, 600))
def test_what_is_packed_is_unpacked(pieces: list[bytes], most: int) -> None:
    data = b"".join(pieces)
    parts = packed(data, most)
    assert unpacked(parts) == data
    assert all(len(tokens) <= most for _, tokens in parts)


def test_far_copies_are_found() -> None:
    text = random.Random(1).randbytes(3000)
    data = text + text[100:1100]
    assert unpacked(packed(data, 512)) == data
    assert sum(len(tokens) for _, tokens in packed(data, 512)) < 3100


def test_code_written_out_becomes_half_as_long() -> None:
    data = b"".join(bytes((0x51, 0xF8, number & 0xFF, 0x2B, 0x22, 0xFB, 0x03, 0x44)) for number in range(0, 1024, 4))
    assert sum(len(tokens) for _, tokens in packed(data, 512)) < len(data) / 2
