"""Nothing that this process prints is shown, not even by libraries in C++, which write to the file descriptors themselves."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress

DESCRIPTORS = (1, 2)
"""stdout and stderr."""


@contextmanager
def silence() -> Iterator[None]:
    """Inside this block stdout and stderr of the whole process lead nowhere. What was printed before is written first. Exceptions are raised as ever."""
    _flush()
    with ExitStack() as undone, open(os.devnull, "w", encoding="utf-8") as nowhere:
        for one in DESCRIPTORS:
            with suppress(OSError):  # it is closed
                undone.callback(_restore, one, os.dup(one))
                os.dup2(nowhere.fileno(), one)
        undone.callback(_flush)
        with redirect_stdout(nowhere), redirect_stderr(nowhere):  # in a notebook or a test, these are not the descriptors
            yield


def _restore(descriptor: int, before: int) -> None:
    os.dup2(before, descriptor)
    os.close(before)


def _flush() -> None:
    """Write what Python's and C's buffers hold to where the descriptors lead now."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    ctypes.CDLL(None).fflush(None)
