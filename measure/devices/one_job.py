"""One job at a time, which closing ends: what the devices have in common that start programs, or wait for those of a board."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OneJob:
    """Held while a job runs. `closing` is set from the moment that somebody closes the device until the job has ended; whatever a job waits for looks at it.

    A job that begins meanwhile sees it, too. One that begins afterwards does not.
    """

    def __init__(self) -> None:
        self.closing = threading.Event()
        self._job, self._closer = threading.Lock(), threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a job."""
        with self._job:
            yield

    @contextmanager
    def ended(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Around letting go of what jobs use: no job runs inside. `interrupt`: ends what a job waits for that does not look at `closing`."""
        with self._closer:
            self.closing.set()
            if not self._job.acquire(blocking=False):
                interrupt()
                self._job.acquire()
            try:
                yield
            finally:
                self.closing.clear()
                self._job.release()
