"""Simulated debug modules for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ansor.measure.wire.bitbang_line import BitbangLine
from ansor.measure.wire.debug_module import DebugModule
from ansor.measure.wire.tap import Tap
from tests.measure.wire.fake_debug_module import FakeDebugModule, FakeServer, serving

Connect = Callable[[FakeDebugModule], DebugModule]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects to a simulated chip through a wire."""
    with ExitStack() as stack:

        def one(chip: FakeDebugModule) -> DebugModule:
            line = BitbangLine("127.0.0.1", int(stack.enter_context(serving(FakeServer(chip))).rpartition(":")[2]), 5.0)
            stack.callback(line.close)
            return DebugModule(Tap(line))

        yield one
