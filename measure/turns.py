"""One measurement at a time on a machine: two tuning runs side by side would slow each other's candidates down by chance.

The turn is a lock on a file in the cache folder. The system gives it back when its holder dies, so nobody waits for a dead run.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from ansor.settings import writable_cache


@contextmanager
def turn() -> Iterator[None]:
    """Wait for the machine's turn to measure, and hold it. Raises CacheError without a cache folder."""
    with (writable_cache() / "measuring.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file gives the turn back
