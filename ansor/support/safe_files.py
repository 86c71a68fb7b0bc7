"""Files that are complete or absent, whatever happens while they are written.

A rename alone is not enough: after a power loss the new name may refer to a file whose bytes never reached the disk. `write_whole` syncs the bytes to
disk, then renames, then syncs the folder. Files that must not be trusted blindly, such as libraries, have a digest next to them: `keep` writes both, and
`kept` checks it. A digest detects accidents; against other users, the folder is private: `private_folder`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansor.errors import CacheError

PRIVATE_FILE = 0o600
PRIVATE_PROGRAM = 0o700
PRIVATE_FOLDER = 0o700
DIGITS = 16
"""Digits of the digest in a file's name."""

ROOT = 0


def private_folder(folder: Path) -> Path:
    """The folder, created as private if missing. Raises CacheError if it cannot be created, belongs to another user, or others can write to it."""
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        found, link = folder.stat(), folder.lstat()
    except OSError as error:
        raise CacheError(f"the cache folder {folder} cannot be made ({error.strerror}); set ANSOR_CACHE to another") from error
    strangers = {found.st_uid, link.st_uid} - {os.geteuid(), ROOT}  # the owner of a link can make it point to another folder after this check
    if strangers:
        what = "is a link that belongs" if link.st_uid in strangers and link.st_ino != found.st_ino else "belongs"
        whose = f"{what} to user {strangers.pop()}, and this is user {os.geteuid()}"
        raise CacheError(f"the cache folder {folder} {whose}: what is in it is run, so set ANSOR_CACHE to a folder of your own, or take this one over by chown")
    if not only_ours(found):
        mode = f"{found.st_mode & 0o777:o}"
        raise CacheError(f"others can write to the cache folder {folder} (mode {mode}): what is in it is run, so remove it or, if you trust what is in it, "
                         f"`chmod go-w {folder}`; or set ANSOR_CACHE to another")  # fmt: skip
    return folder


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Put a file in place in one step: readers see the old bytes or the new ones, even after a power loss.

    mode: its permissions; None: those of the file that it replaces or, for a new file, what the umask allows.
    Processes that have the old file open or loaded keep it. A link stays a link, and a device (/dev/stdout) is written to directly. Raises OSError if the file
    cannot be written, and then leaves nothing behind.
    """
    path = path.resolve()
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    if mode is None and path.is_file():
        mode = stat.S_IMODE(path.stat().st_mode)
    name = str(path.parent / f".{path.name}.{secrets.token_urlsafe(6)}")
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else PRIVATE_FILE)
    except OSError as error:
        error.filename = str(path)  # nobody asked for the temporary one
        raise
    try:
        try:
            with naming(path):
                _write_all(descriptor, content)
                if mode is not None:
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
    """Add the file's name to OSErrors from writing: those after opening have none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk. File systems that cannot do that are assumed to have done it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # EINVAL from some network and FUSE file systems
        pass
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, if they are missing, and sync their names to disk. Raises OSError."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_folder(one.parent)


def keep(note: Path, suffix: str, content: bytes, mode: int = PRIVATE_FILE) -> Path:
    """Write a file that only this user can read, and then the note with its digest. Returns the file's path, which is next to the note, and named after both.

    mode: the file's permissions, from the moment that it is there: another process may have kept the same file, and be about to run it.

    Processes that keep different contents under one note do not disturb each other: the note belongs to one of the files, and each file is complete. Removes a
    folder, link, pipe or device in place of either. Raises OSError.
    """
    found = digest(content)
    path = _place(note, suffix, found)
    _remove_unless_file(path)
    _remove_unless_file(note)
    write_whole(path, content, mode)
    write_whole(note, f"{found}\n".encode(), PRIVATE_FILE)
    return path


def kept(note: Path, suffix: str) -> Path | None:
    """The file that `keep` wrote with this note; None unless its bytes match the digest in the note, and no other user could have written either."""
    found = kept_content(note, suffix)
    return None if found is None else found[0]


def kept_content(note: Path, suffix: str) -> tuple[Path, bytes] | None:
    """The file that `kept` finds, and its bytes."""
    try:
        wanted = _own(note).decode().strip()
        path = _place(note, suffix, wanted)
        content = _own(path)
        return (path, content) if digest(content) == wanted else None
    except (OSError, ValueError):  # also for a note that is not text, or has a NUL in it
        return None


def make_room(folder: Path, most: int) -> None:
    """If a folder has more than `most` files, remove the least recently used quarter. Raises OSError."""
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
    """The bytes of a file that only we can have written. Raises OSError for any other; does not read from anything but a regular file: a pipe has no end."""
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
    """Remove anything that is not a regular file from a path. What a link points to stays. Raises OSError."""
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
