"""Libraries that are built once and kept in the cache folder, each with its digest beside it: none is loaded unchecked, and a damaged one is built again."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ansor.errors import CacheError
from ansor.support import settings
from ansor.support.notices import log
from ansor.support.safe_files import keep, kept, private_folder

FOLDER = "libraries"
SUFFIX = ".so"
LEFT_OVER_SECONDS = 3600.0  # no build takes that long

_checked: dict[Path, tuple[Path, tuple[int, ...]]] = {}
"""For each note whose library had the right digest in this process: the library, and what `stat` said of both then."""


def kept_library(name: str, build: Callable[[Path], None], suffix: str = SUFFIX) -> Path:
    """The library of that name; where there is none, or a damaged one, `build` is called with the place to put it at. `suffix`: how its file's name ends.

    A cache folder that is read-only is looked into, and what it lacks is kept among the temporary files. Raises CacheError when it cannot be kept, and
    what `build` raises.
    """
    folder = settings.cache_directory() / FOLDER
    ready = _checked_library(private_folder(folder) / name, suffix) if folder.is_dir() else None
    if ready is not None:
        return ready
    note = settings.cache_part(FOLDER) / name
    ready = _checked_library(note, suffix)
    if ready is not None:
        return ready
    if note.exists():
        log.info("the library %s is damaged, or was written by others: rebuilding it", note)
    try:
        _remove_left_over(note, suffix)
        with tempfile.TemporaryDirectory(prefix="cc-", dir=note.parent) as scratch:
            made = Path(scratch) / f"made{suffix}"
            build(made)
            library = keep(note, suffix, made.read_bytes())
    except OSError as error:
        raise CacheError(f"the library {note} cannot be stored ({error}); free some space, or set ANSOR_CACHE to another folder") from error
    _checked[note] = library, _signature(note, library)
    return library


def _checked_library(note: Path, suffix: str) -> Path | None:
    try:
        library, signature = _checked.get(note, (note, ()))
        if signature and signature == _signature(note, library):
            return library
        found = kept(note, suffix)
        if found is not None:
            _checked[note] = found, _signature(note, found)
    except OSError:
        return None
    return found


def _signature(note: Path, library: Path) -> tuple[int, ...]:
    """What changes when somebody writes to one of them, or puts another in its place."""
    return tuple(number for found in (note.stat(), library.stat()) for number in (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size))


def _remove_left_over(note: Path, suffix: str) -> None:
    """Remove what processes left that died while they built, and earlier libraries of this name: none of them is whole."""
    for path in (path for pattern in ("cc-*", ".*", f"{note.name}-*{suffix}") for path in note.parent.glob(pattern)):
        with suppress(OSError):  # another process removes it, too
            if time.time() - path.stat().st_mtime > LEFT_OVER_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
