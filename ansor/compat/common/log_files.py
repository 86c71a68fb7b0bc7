"""Writes log files: a whole file in one step, or lines appended to a file."""

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
    """Append lines to a file in one write, terminating a torn last line first if the file can be read. Creates a missing file.

    Raises RecordError if they cannot be written.
    """
    with writing(path, what):
        descriptor, readable = _opened(path)
        try:
            whole = b"\n" + content if readable and _torn(descriptor) else content
            if os.write(descriptor, whole) != len(whole):
                raise RecordError(f"{path}: not all records could be written; is the disk full?")
        finally:
            os.close(descriptor)


def _opened(path: str | Path) -> tuple[int, bool]:
    """The file for appending, and whether it can also be read: some logs may only be written."""
    flags = os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_RDWR, 0o666), True
    except PermissionError:
        return os.open(path, flags | os.O_WRONLY, 0o666), False


def _torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


@contextmanager
def writing(path: str | Path, what: str) -> Iterator[None]:
    """Turn an OSError into a RecordError."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{what} cannot be written to {path}: {error.strerror or error}; name another file") from error
