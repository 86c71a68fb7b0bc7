"""Frames are found again, whatever is around them, and never where there are none."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.measure.wire.framing import ESCAPE, LARGEST, START, Frame, Receiver, encoded

NUMBERS = st.integers(0, 2**32 - 1)
BODIES = st.one_of(st.binary(max_size=300), st.lists(st.sampled_from((START, ESCAPE, START ^ 0x20, ESCAPE ^ 0x20, 0)), max_size=80).map(bytes))
FRAMES = st.builds(Frame, st.integers(0, 255), NUMBERS, NUMBERS, BODIES)


def _fed(receiver: Receiver, data: bytes, cuts: list[int]) -> list[Frame]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [frame for first, last in zip(places, places[1:], strict=False) for frame in receiver.feed(data[first:last])]


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAMES, max_size=4), st.lists(st.integers(0, 5000), max_size=8))
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    receiver = Receiver()
    assert _fed(receiver, b"".join(map(encoded, frames)), cuts) == frames
    assert receiver.damaged == 0


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.lists(FRAMES, min_size=1, max_size=3))
def test_whatever_comes_before_costs_nothing_behind_it(noise: bytes, frames: list[Frame]) -> None:
    assert Receiver().feed(noise + b"".join(map(encoded, frames)))[-len(frames) :] == frames


def test_a_start_marker_is_in_no_frame_but_at_its_beginning() -> None:
    for size in (0, 1, 255, 1000):
        assert encoded(Frame(START, 0x7E7D7E7D, 0x7D7E7D7E, bytes((START,)) * size)).count(START) == 1


def test_damaged_frames_are_counted_and_never_taken() -> None:
    source = random.Random(1)
    for _ in range(3000):
        frame = Frame(source.randrange(256), source.getrandbits(32), source.getrandbits(32), source.randbytes(source.randrange(60)))
        data = bytearray(encoded(frame))
        place = source.randrange(1, len(data))
        kind = source.randrange(3)
        if kind == 0:
            data[place] ^= 1 << source.randrange(8)
        elif kind == 1:
            del data[place]
        else:
            data.insert(place, source.choice((START, 0, source.randrange(256))))
        receiver = Receiver()
        found = receiver.feed(bytes(data))
        # An inserted byte may stand behind what it repeats, or before the escape that it is equal to: then nothing is changed.
        assert found in ([], [frame])
        assert receiver.feed(encoded(frame)) == [frame] and (found or receiver.damaged or kind == 2)


def test_a_length_that_cannot_be_ends_the_frame() -> None:
    receiver = Receiver()
    assert receiver.feed(encoded(Frame(1, 2, 3, bytes(LARGEST + 1)))) == [] and receiver.damaged == 1
    assert receiver.feed(encoded(Frame(1, 2, 3))) == [Frame(1, 2, 3)]
