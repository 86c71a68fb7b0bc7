"""Builds libraries once and keeps them in the cache folder, each with its digest beside it: all are checked before loading, and damaged ones rebuilt."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ansor.errors import CacheError
from ansor.support import settings
from ansor.support.notices import log
from ansor.support.safe_files import PRIVATE_FILE, keep, kept, private_folder

FOLDER = "libraries"
SUFFIX = ".so"
LEFT_OVER_SECONDS = 3600.0  # no build takes that long

_checked: dict[Path, tuple[Path, tuple[int, ...]]] = {}
"""For each note whose library had the right digest in this process: the library, and the `stat` of both at that time."""


def kept_library(name: str, build: Callable[[Path], None], suffix: str = SUFFIX, mode: int = PRIVATE_FILE) -> Path:
    """The library of that name; if there is none, or it is damaged, `build` is called with the path to write. `suffix`, `mode`: of its file.

    A read-only cache folder is searched, and missing libraries are kept among the temporary files. Raises CacheError if it cannot be kept, and
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
            library = keep(note, suffix, made.read_bytes(), mode)
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
    """Changes if somebody writes to one of them, or replaces it."""
    return tuple(number for found in (note.stat(), library.stat()) for number in (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size))


def _remove_left_over(note: Path, suffix: str) -> None:
    """Remove leftovers of processes that died while building, and earlier libraries of this name, which are damaged."""
    for path in (path for pattern in ("cc-*", ".*", f"{note.name}-*{suffix}") for path in note.parent.glob(pattern)):
        with suppress(OSError):  # another process removes it too
            if time.time() - path.stat().st_mtime > LEFT_OVER_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
