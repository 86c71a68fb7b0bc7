"""Files that are whole or not there, whatever happens while they are written.

A rename alone is not enough: after a power loss the new name may stand for a file whose bytes never reached the disk. `write_whole` brings the bytes to
the disk, then renames, then brings the folder to the disk. For files that must not be trusted blindly, such as libraries, a digest is kept beside them:
`keep` writes both, `kept` looks. A digest is against accidents; against people, the folder is private: `private_folder`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansor.errors import CacheError

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
DIGITS = 16
"""Of the digest, in a file's name."""

ROOT = 0


def private_folder(folder: Path) -> Path:
    """The folder, made for this user alone when missing. Raises CacheError when it cannot be made, belongs to somebody else, or can be written by others."""
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        found, link = folder.stat(), folder.lstat()
    except OSError as error:
        raise CacheError(f"the cache folder {folder} cannot be made ({error.strerror}); set ANSOR_CACHE to another") from error
    strangers = {found.st_uid, link.st_uid} - {os.geteuid(), ROOT}  # who owns a link can let it point to another folder, after this look at it
    if strangers:
        what = "is a link that belongs" if link.st_uid in strangers and link.st_ino != found.st_ino else "belongs"
        whose = f"{what} to user {strangers.pop()}, and this is user {os.geteuid()}"
        raise CacheError(f"the cache folder {folder} {whose}: what is in it is run, so set ANSOR_CACHE to a folder of your own, or take this one over by chown")
    if not only_ours(found):
        mode = f"{found.st_mode & 0o777:o}"
        raise CacheError(f"others can write to the cache folder {folder} (mode {mode}): what is in it is run, so remove it or, if you trust what is in it, "
                         f"`chmod go-w {folder}`; or set ANSOR_CACHE to another")  # fmt: skip
    return folder


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Put a file in place in one step: readers see the old bytes or the new ones, and so does who comes after a power loss.

    Whoever has the old file open or loaded keeps it. A link stays one, and a device (/dev/stdout) is written to directly. Raises OSError when it
    cannot be written; nothing is left behind then.
    """
    path = path.resolve()
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        try:
            with naming(path):
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


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let OSErrors from writing say which file they are about: what fails after the opening names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk. File systems that cannot do that are believed to have done it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # EINVAL from some network and FUSE file systems
        pass
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing, and bring their names to the disk. Raises OSError."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_folder(one.parent)


def keep(note: Path, suffix: str, content: bytes) -> Path:
    """Write a file, for this user alone, and then the note that has its digest. Returns where the file is: beside the note, and named after both.

    Processes that keep different contents by one note do each other no harm: the note is of one of the files, and each of them is whole. A folder, link,
    pipe or device in the place of either is removed. Raises OSError.
    """
    found = digest(content)
    path = _place(note, suffix, found)
    _remove_unless_file(path)
    _remove_unless_file(note)
    write_whole(path, content, PRIVATE_FILE)
    write_whole(note, f"{found}\n".encode(), PRIVATE_FILE)
    return path


def kept(note: Path, suffix: str) -> Path | None:
    """The file that `keep` wrote with this note; None unless its bytes have the digest in the note, and nobody else could have written either."""
    try:
        wanted = _own(note).decode().strip()
        path = _place(note, suffix, wanted)
        return path if digest(_own(path)) == wanted else None
    except (OSError, ValueError):  # also for a note that is not text, or has a NUL in it
        return None


def make_room(folder: Path, most: int) -> None:
    """Remove a quarter of the files of a folder where there are more than `most`: those that were not touched for longest. Raises OSError."""
    files = list(folder.iterdir())
    if len(files) > most:
        for path in sorted(files, key=lambda path: path.lstat().st_mtime)[: len(files) // 4]:
            path.unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def only_ours(found: os.stat_result) -> bool:
    """Whether only this user and root can have written what `found` describes."""
    return found.st_uid in (os.geteuid(), ROOT) and not found.st_mode & 0o022


def _place(note: Path, suffix: str, found: str) -> Path:
    return note.with_name(f"{note.name}-{found[:DIGITS]}{suffix}")


def _own(path: Path) -> bytes:
    """The bytes of a file that only we can have written. Raises OSError for any other, and at once for what is not a regular file: a pipe has no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a regular file")
        if not only_ours(found):
            raise PermissionError(f"{path} can be written by others")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _remove_unless_file(path: Path) -> None:
    """Make room for a file where something of another kind is. What a link points to stays. Raises OSError."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        elif not stat.S_ISREG(mode):
            path.unlink()
    except FileNotFoundError:  # nothing is there, or another process has just removed it
        pass


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
