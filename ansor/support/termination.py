"""Makes SIGTERM behave like Ctrl-C: a run cleans up before the process ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM asked the process to end."""


class Requested(KeyboardInterrupt):
    """The caller's own function asked a run to end."""


@contextmanager
def termination() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM in the main thread of this process; its children end as before. A handler that is already set stays."""
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
