"""Lets one measurement run at a time on a machine: parallel tuning runs would randomly slow down each other's candidates.

The turn is a lock on a file in the cache folder. The system releases it when its holder dies. After two seconds, a waiting process reports
whom it waits for. A suspended holder (Ctrl-Z) is bypassed: the file is replaced by a new one, which everybody else uses. When the holder resumes, it
finishes its trial in parallel with ours, and takes its next turn on the new file.
"""

import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ansor.errors import CacheError
from ansor.support.notices import warn
from ansor.support.settings import writable_cache

PATIENCE_SECONDS = 2.0
"""Waits shorter than this are not reported: most trials are shorter."""

LOOK_SECONDS = 1.0
"""Time between two checks of who holds the turn."""

Say = Callable[[str], None]


@contextmanager
def turn(say: Say = warn) -> Iterator[None]:
    """Wait for the turn to measure on this machine, and hold it. `say` gets one message if that takes long. Raises CacheError without a cache folder
    or if the lock is not a plain file."""
    with _taken(writable_cache() / "measuring.lock", say) as file:
        _sign(file)
        yield  # closing the file releases the turn


def _taken(path: Path, say: Say) -> IO[bytes]:
    """The file, locked."""
    told = False
    while True:
        file = _opened(path)
        try:
            told = _wait(file, path, say, told)
            if _is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # another process replaced the file we waited for: use the new one


def _opened(path: Path) -> IO[bytes]:
    """Open the file, creating it if missing. Raises CacheError for a folder, a pipe and the like; never blocks on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise CacheError(
            f"measurements take turns through the file {path}, which cannot be opened: {error}; remove it, or set ANSOR_CACHE to another folder"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CacheError(f"measurements take turns through the file {path}, but that is a pipe or a device; remove it, or set ANSOR_CACHE to another folder")
    return os.fdopen(descriptor, "a+b")


def _wait(file: IO[bytes], path: Path, say: Say, told: bool) -> bool:
    """Lock the file, or replace it if its holder is suspended. Returns whether the wait was reported."""
    if _locks_at_once(file):
        return told
    locked = _lock_in_background(file)
    before: dict[str, object] | None = None
    patience = LOOK_SECONDS if told else PATIENCE_SECONDS
    while not locked.wait(patience):
        holder, patience = _holder(file), LOOK_SECONDS
        if not told:
            say(f"waiting for {_words(holder)}, which measures on this machine; two at a time would slow each other down")
            told = True
        # Check twice: a new holder may not have signed yet.
        if holder == before and _is_stopped(holder) and _replaced(file, path):
            say(f"continuing despite {_words(holder)}, which is suspended: end it, or let it continue")
            break
        before = holder
    return told


def _lock_in_background(file: IO[bytes]) -> threading.Event:
    """An event set once the file is locked. A thread waits, as flock wakes waiters at once but has no time limit.

    The thread has its own descriptor of the same lock. If nobody waits any more, closing it releases the lock.
    """
    descriptor, locked = os.dup(file.fileno()), threading.Event()

    def lock() -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            locked.set()
        finally:
            os.close(descriptor)

    threading.Thread(target=lock, name="ansor-turn", daemon=True).start()
    return locked


def _locks_at_once(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether the path still names this file."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    own = os.fstat(file.fileno())
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def _replaced(file: IO[bytes], path: Path) -> bool:
    """Unlink the file of a suspended holder, so that the next process creates a new one; False if another process is doing that."""
    with path.with_suffix(".replacing").open("ab") as guard:  # if two bypass one holder, the second must not remove the first one's file
        if not _locks_at_once(guard):
            return False
        if _is_at(file, path):
            path.unlink()
        return True


def _sign(file: IO[bytes]) -> None:
    """Write the holder's identity into the file."""
    file.truncate(0)
    file.write(json.dumps({"pid": os.getpid(), "since": time.time(), "namespace": _namespace()}).encode())
    file.flush()


def _holder(file: IO[bytes]) -> dict[str, object]:
    """Who holds the turn; empty if unknown."""
    try:
        found = json.loads(os.pread(file.fileno(), 4096, 0))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(holder: dict[str, object]) -> str:
    pid, since = holder.get("pid"), holder.get("since")
    if not isinstance(pid, int):
        return "another run"
    return f"another run (process {pid}{f', for {max(0.0, time.time() - since):.0f} s' if isinstance(since, float) else ''})"


def _is_stopped(holder: dict[str, object]) -> bool:
    """Whether the holder is suspended, or gone while a fork of it holds the lock. False for processes that are not visible from here."""
    pid = holder.get("pid")
    if not isinstance(pid, int) or not _namespace() or holder.get("namespace") != _namespace():
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def _namespace() -> str:
    """The PID namespace: containers have their own. '' without /proc."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
