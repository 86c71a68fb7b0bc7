"""Checks, before any work starts, that a place can hold records: a plain file in a writable folder."""

import errno
import os
import stat
from pathlib import Path

from ansor.errors import RecordError
from ansor.support.safe_files import make_folder

_KINDS = {
    stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe (FIFO)", stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device",
}  # fmt: skip


def check_place(path: Path) -> None:
    """Raises RecordError for a place that cannot hold records: a folder, a pipe, a socket, a device."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a NUL in the name, a loop of links, an inaccessible folder
        raise RecordError(f"records cannot be kept in {str(path)!r}: {error}; name another file") from error
    kind = next((words for test, words in _KINDS.items() if test(mode)), None)
    if kind is not None:
        raise RecordError(f"records cannot be read from or kept in {path}, which is {kind}; name a plain file")


def make_place(path: Path) -> None:
    """Create the file and its folder if missing, so that an unwritable place is reported before the work. Raises RecordError."""
    check_place(path)
    try:
        make_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666))
    except OSError as error:
        raise RecordError(f"records cannot be written to {path}: {error}; name another file") from error


def sync(descriptor: int) -> None:
    """Sync data and file length to disk. Raises OSError if that fails; ignores file systems without such a call."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise
