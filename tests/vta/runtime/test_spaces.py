"""Places in memories, and micro-ops that make room for others."""

from __future__ import annotations

import random

from ansor.vta.runtime.spaces import Residents, Space


def test_places_never_overlap_and_are_aligned() -> None:
    chance, space, held, refused = random.Random(1), Space(10, 1000, 16), dict[int, int](), 0
    for _ in range(2000):
        if held and chance.random() < 0.45:
            start = chance.choice(list(held))
            space.give_back(start)
            del held[start]
            continue
        length = chance.randint(0, 200)
        found = space.take(length)
        refused += found is None
        if found is None:
            assert space.free < 990
            continue
        held[found] = length
        ends = sorted((start, start + size) for start, size in held.items())
        assert found % 16 == 0 and found >= 10 and found + length <= 1000
        assert all(left[1] <= right[0] for left, right in zip(ends, ends[1:], strict=False))
    assert refused > 20


def test_the_longest_unused_make_room() -> None:
    kept = Residents(10)
    assert [kept.place(key, 4) for key in (b"a", b"b", b"a")] == [(0, False), (4, False), (0, True)]
    assert kept.place(b"c", 3) == (4, False) and kept.place(b"a", 4) == (0, True)
    assert kept.place(b"b", 4) == (4, False) and list(kept.starts) == [b"a", b"b"]
    assert kept.place(b"all", 10) == (0, False) and list(kept.starts) == [b"all"]
