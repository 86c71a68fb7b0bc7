"""Nothing that this process prints is shown, not even by libraries in C++, which write to the file descriptors themselves."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO

DESCRIPTORS = (1, 2)
"""stdout and stderr."""


@contextmanager
def silence() -> Iterator[None]:
    """Inside this block stdout and stderr of the whole process lead nowhere. What was printed before is written first. Exceptions are raised as ever."""
    sys.stdout.flush()
    sys.stderr.flush()
    _flush_c()
    kept = [os.dup(one) for one in DESCRIPTORS]
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for one in DESCRIPTORS:
            os.dup2(nowhere, one)
        os.close(nowhere)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # in a notebook or a test, these are not the descriptors
            yield
    finally:
        _flush_c()
        for one, before in zip(DESCRIPTORS, kept, strict=True):
            os.dup2(before, one)
            os.close(before)


def _flush_c() -> None:
    """Write what C's own buffers hold to where the descriptors lead now."""
    ctypes.CDLL(None).fflush(None)
