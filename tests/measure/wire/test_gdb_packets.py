"""Packets of the GDB protocol."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansor.measure.wire.gdb_packets import LIMIT, Decoder, Piece, escaped, framed, plain
from ansor.measure.wire.wire import WireError


@given(some.lists(some.binary(max_size=60), max_size=6), some.integers(0, 1000))
def test_what_is_framed_comes_back_in_any_pieces(packets: list[bytes], seed: int) -> None:
    """With receipts in between."""
    source, decoder, seen = random.Random(seed), Decoder(), []
    stream = b"".join(b"+" + framed(escaped(data)) for data in packets)
    while stream:
        cut = source.randint(1, len(stream))
        decoder.feed(stream[:cut])
        stream = stream[cut:]
        while (piece := decoder.take()) is not None:
            seen.append(piece)
    assert seen == [piece for data in packets for piece in (Piece("ack"), Piece("packet", data))]


def test_runs_and_escapes() -> None:
    """As the protocol's description has them."""
    assert plain(b"0* ") == b"0000" and plain(b"a}\x03b") == b"a#b" and plain(b"}]*\"") == b"}" * 6
    assert [plain(bad) for bad in (b"*a", b"a*", b"a}", b"a*\x1f", b"a*\x7f")] == [None] * 5
    assert plain(b"a" + b"*~" * (LIMIT // 97 + 1)) is None


@given(some.binary(min_size=1, max_size=40), some.data())
def test_a_changed_byte_is_never_taken_for_right(data: bytes, more: some.DataObject) -> None:
    """Whatever one byte becomes, the packet is not another one."""
    packet = bytearray(framed(escaped(data)))
    packet[more.draw(some.integers(0, len(packet) - 1))] ^= more.draw(some.integers(1, 255))
    decoder = Decoder()
    decoder.feed(bytes(packet))
    while (piece := decoder.take()) is not None:
        assert piece.kind != "packet" or piece.data == data


@pytest.mark.parametrize("flood", [b"x", b"$x", b"%"])
def test_what_never_ends_is_ended(flood: bytes) -> None:
    """Noise, and a packet without an end."""
    decoder = Decoder()
    with pytest.raises(WireError, match="bytes"):
        for count in range(60):
            decoder.feed(flood[-1:] * 65536 if count else flood)
            while decoder.take() is not None:
                pass
