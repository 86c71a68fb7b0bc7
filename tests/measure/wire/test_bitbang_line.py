"""A line gives answers in order, and every failure is one sentence, in bounded time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ansor.measure.wire.bitbang_line import UNANSWERED, BitbangLine
from ansor.measure.wire.wire import WireError
from tests.measure.wire.fake_debug_module import FakeDebugModule, FakeServer, serving


@contextmanager
def connected(server: FakeServer, silent: float = 5.0) -> Iterator[BitbangLine]:
    with serving(server) as text:
        line = BitbangLine("127.0.0.1", int(text.rpartition(":")[2]), silent)
        try:
            yield line
        finally:
            line.close()


def test_more_answers_than_are_let_out_at_once_come_in_order() -> None:
    with connected(FakeServer(FakeDebugModule())) as line:
        assert line.exchange(b"0R4" * (2 * UNANSWERED)).tolist() == [0] * (2 * UNANSWERED)
        assert (line.sent, line.received) == (6 * UNANSWERED, 2 * UNANSWERED)


def test_nothing_to_send_is_nothing() -> None:
    with connected(FakeServer(FakeDebugModule())) as line:
        assert len(line.exchange(b"")) == 0


def test_silence_is_an_error() -> None:
    with connected(FakeServer(FakeDebugModule(), silent_after=10), 0.2) as line:
        with pytest.raises(WireError, match="silent for 0.2 seconds; does it serve another client"):
            line.exchange(b"0R" * 10)
        with pytest.raises(WireError, match="is closed: it was silent"):
            line.exchange(b"0R")


def test_a_connection_that_ends_is_an_error() -> None:
    with connected(FakeServer(FakeDebugModule(), cut_after=10)) as line, pytest.raises(WireError, match="ended the connection|is gone"):
        line.exchange(b"0R" * 100)


@pytest.mark.parametrize("garbage", [b"x", b"01", b"\xff"])
def test_garbage_is_an_error_that_shows_it(garbage: bytes) -> None:
    with connected(FakeServer(FakeDebugModule(), garbage=garbage)) as line, pytest.raises(WireError, match="where 10 characters 0 and 1 were expected"):
        line.exchange(b"0R" * 10)


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(WireError, match="is it running, on this port"):
        BitbangLine("127.0.0.1", port)


def test_closing_from_another_thread_ends_what_waits() -> None:
    with connected(FakeServer(FakeDebugModule(), silent_after=0), 60.0) as line:
        timer = threading.Timer(0.1, line.close)
        timer.start()
        with pytest.raises(WireError, match="closed here|ended the connection|is gone"):
            line.exchange(b"0R")
        timer.join()
