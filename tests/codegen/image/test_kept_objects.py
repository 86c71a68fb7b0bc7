"""What is kept in memory, and for how long."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from ansor.codegen.image.kept_objects import KeptObjects, NestObject


def of(size: int, digest: str = "") -> NestObject:
    return NestObject(bytes(size), digest, 0)


def test_what_was_not_used_for_longest_is_dropped() -> None:
    kept = KeptObjects(100)
    for name in "abc":
        kept.keep(name, of(40))
    assert [kept.get(name) is not None for name in "abc"] == [False, True, True]
    assert kept.get("b") is not None
    kept.keep("d", of(40))
    assert [kept.get(name) is not None for name in "bcd"] == [True, False, True]


def test_a_key_that_comes_again_counts_once_and_what_is_too_large_is_not_kept() -> None:
    kept = KeptObjects(100)
    for _ in range(5):
        kept.keep("a", of(40))
    kept.keep("b", of(60))
    assert kept.get("a") is not None and kept.get("b") is not None
    kept.keep("c", of(101))
    assert kept.get("c") is None
    kept.keep("d", of(100))
    assert kept.get("d") is not None


def test_threads_may_share_it() -> None:
    kept = KeptObjects(1000)

    def use(seed: int) -> bool:
        source = random.Random(seed)
        for _ in range(300):
            key = str(source.randrange(40))
            kept.keep(key, of(source.randrange(1, 200), key))
            found = kept.get(str(source.randrange(40)))
            if found is not None and len(found.content) > 200:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(8)))
    assert kept._bytes == sum(len(one.content) for one in kept._objects.values()) <= 1000


def test_a_forked_child_begins_with_nothing() -> None:
    kept = KeptObjects(100)
    kept.keep("a", of(40))
    kept.after_fork()
    assert kept.get("a") is None
    kept.keep("b", of(100))
    assert kept.get("b") is not None
