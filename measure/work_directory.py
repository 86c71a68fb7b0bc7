"""A private folder for the builds of one process: no other run touches it, and it is removed when the process ends."""

import fcntl
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO

from ansor.errors import CacheError
from ansor.support import settings
from ansor.support.closing import Closing

GRACE_SECONDS = 60.0  # a folder this young may not have its lock yet


class WorkDirectory(Closing):
    """A folder under the cache folder (or among the temporary files, if that is read-only), locked while this process lives; creating it also removes those
    of dead processes. Raises CacheError if it cannot be created.
    """

    def __init__(self) -> None:
        parent = settings.cache_part("work")
        try:
            remove_stale(parent)
            self.path = Path(tempfile.mkdtemp(dir=parent))
            self._lock = (self.path / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            raise CacheError(f"no folder for builds can be made in {parent} ({error}); free some space, or set ANSOR_CACHE to another folder") from error
        self._remove = weakref.finalize(self, _remove, self.path, self._lock)

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


def remove_stale(parent: Path, *, grace_seconds: float = GRACE_SECONDS) -> None:
    """Remove the work folders under `parent` whose processes are gone."""
    for folder in parent.iterdir():
        try:
            if time.time() - folder.stat().st_mtime > grace_seconds and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process removes it too
            continue


def _in_use(folder: Path) -> bool:
    try:
        with (folder / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _remove(path: Path, lock: IO[str]) -> None:
    shutil.rmtree(path, ignore_errors=True)
    lock.close()
