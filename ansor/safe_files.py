"""Files that are whole or not there, whatever happens while they are written.

A rename alone is not enough: after a power loss the new name may stand for a file whose bytes never reached the disk. `write_whole` brings the bytes to
the disk, then renames, then brings the folder to the disk. Who cannot afford to believe a file (a library that will be run) keeps its digest beside it:
`keep` writes both, `is_whole` looks.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

PRIVATE_FILE = 0o600
SUFFIX = ".sha256"
"""What the name of a digest ends with."""


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Put a file in place in one step: readers see the old bytes or the new ones, and so does who comes after a power loss.

    Whoever has the old file open or loaded keeps it. Raises OSError when it cannot be written; nothing is left behind then.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        try:
            _write_all(descriptor, content)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk. File systems that cannot do that are believed to have done it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # EINVAL from some network and FUSE file systems
        pass
    finally:
        os.close(descriptor)


def keep(path: Path, content: bytes) -> None:
    """Write a file and its digest beside it, both for this user alone. Raises OSError."""
    write_whole(path, content, PRIVATE_FILE)
    write_whole(digest_place(path), f"{digest(content)}\n".encode(), PRIVATE_FILE)


def is_whole(path: Path) -> bool:
    """Whether a file is what `keep` wrote: its bytes have the digest beside it, and nobody else could have written either."""
    try:
        wanted, content = _own(digest_place(path)), _own(path)
    except OSError:
        return False
    return wanted == f"{digest(content)}\n".encode()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def digest_place(path: Path) -> Path:
    """Where the digest of a file stands."""
    return path.with_name(path.name + SUFFIX)


def only_ours(found: os.stat_result) -> bool:
    """Whether only this user and root can have written what `found` describes."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022


def _own(path: Path) -> bytes:
    """The bytes of a file that only we can have written. Raises OSError for any other."""
    with path.open("rb") as file:
        if not only_ours(os.fstat(file.fileno())):
            raise PermissionError(f"{path} can be written by others")
        return file.read()


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
