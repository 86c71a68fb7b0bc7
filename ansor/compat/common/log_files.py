"""Writes log files: whole ones in one step, and further lines at the end of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansor.errors import RecordError
from ansor.support.safe_files import write_whole


def put(path: str | Path, content: bytes, what: str = "records") -> None:
    """Write a whole file atomically: readers see either the old or the new one. Raises RecordError if it cannot be written."""
    with writing(path, what):
        write_whole(Path(path), content)


def append(path: str | Path, content: bytes, what: str = "records") -> None:
    """Append lines to a file in one write, terminating a torn last line first. Creates a missing file. Raises RecordError if they cannot be written."""
    with writing(path, what):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            whole = b"\n" + content if torn else content
            if os.write(descriptor, whole) != len(whole):
                raise RecordError(f"{path}: not all records could be written; is the disk full?")
        finally:
            os.close(descriptor)


@contextmanager
def writing(path: str | Path, what: str) -> Iterator[None]:
    """Raises RecordError for an OSError."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{what} cannot be written to {path}: {error.strerror or error}; name another file") from error
