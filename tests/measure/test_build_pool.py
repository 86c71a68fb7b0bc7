"""Builders that share a pool: no more compilers at a time than it has jobs, and each ends only what is its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from ansor.codegen.building import Toolchain
from ansor.codegen.source import CSource
from ansor.measure.build_pool import BuildPool
from ansor.measure.builder import Builder


@dataclass
class Slow:
    """A toolchain that fails after a while, or when it is cancelled."""

    seconds: float = 0.05
    running: list[int] = field(default_factory=lambda: [0])
    most: list[int] = field(default_factory=lambda: [0])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, form: str) -> None:
        pass

    def together(self, form: str) -> int:
        return 1

    def build(self, group: Sequence[CSource], form: str, stem: object, *, timeout: float, cancelled: threading.Event) -> object:
        with self.lock:
            self.running[0] += 1
            self.most[0] = max(self.most[0], self.running[0])
        cancelled.wait(self.seconds)
        with self.lock:
            self.running[0] -= 1
        raise ValueError("it builds nothing")


def builder(pool: BuildPool | int, seconds: float = 0.05, beside: Slow | None = None) -> tuple[Builder, Slow]:
    tools = Slow(seconds) if beside is None else Slow(seconds, beside.running, beside.most, beside.lock)
    return Builder(cast(Toolchain, tools), jobs=pool), tools


SOURCES = [CSource("", f"k{number}", ()) for number in range(4)]


def test_builders_of_one_pool_have_its_jobs_together() -> None:
    with BuildPool(2) as pool:
        one, tools = builder(pool)
        two, _ = builder(pool, beside=tools)
        with one, two:
            futures = [*one.submit(SOURCES), *two.submit(SOURCES)]
            assert not one.has_free_job and not two.has_free_job
            for future in futures:
                with pytest.raises(ValueError, match="it builds nothing"):
                    future.result()
            assert one.has_free_job and two.has_free_job
    assert tools.most == [2]


def test_a_builder_that_ends_leaves_the_pool_to_the_others() -> None:
    with BuildPool(1) as pool:
        one, _ = builder(pool, seconds=1e6)
        two, _ = builder(pool)
        with two:
            first = one.submit(SOURCES)
            second = two.submit(SOURCES)
            started = time.monotonic()
            one.close()
            assert all(future.done() for future in first) and time.monotonic() - started < 1e3
            for future in second:
                with pytest.raises(ValueError, match="it builds nothing"):
                    future.result()


def test_a_pool_of_its_own_ends_with_the_builder() -> None:
    one, _ = builder(2)
    one.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        one.submit(SOURCES)
