"""SIGTERM as what Ctrl-C is: what a run has begun is put away before the process ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """The process was asked to end, by SIGTERM."""


@contextmanager
def termination() -> Iterator[None]:
    """Raise `Terminated` for SIGTERM in the main thread of this process; its children end as they did. Nothing changes where somebody listens already."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def told(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:
            os.kill(os.getpid(), number)
        raise Terminated

    signal.signal(signal.SIGTERM, told)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
