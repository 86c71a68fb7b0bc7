"""One job at a time, ended by closing: shared by devices that start programs or wait for a board's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class JobLock:
    """Held while a job runs. While the device is being closed, `closing` is set until the job has ended; every wait of a job checks it.

    A job that begins meanwhile sees it too; a job that begins afterwards does not.
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
        """Around releasing what jobs use: no job runs inside. `interrupt`: ends those waits of a job that do not check `closing`."""
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
