"""Identifies the state of this package's files, for the keys of cached results that depend on its code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("ansor", "ansor.rules", "ansor.cost_model", "ansor.measure", "ansor.targets")
SUFFIXES = (".py", ".c", ".h", ".gz", ".toml")


@lru_cache(maxsize=1)
def package_state() -> str:
    """A digest of the version, and of the names, sizes and times of all files. It takes milliseconds; reading the files would take a second."""
    told = sorted({state for folder in _folders() if folder.is_dir() for state in _states(str(folder))})
    return hashlib.sha256(repr((_version(), told)).encode()).hexdigest()  # if times are normalised, two versions may have equal sizes and times


def _states(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of each file in a folder and its subfolders. `Path.rglob` would look at each file several times."""
    try:
        entries = os.scandir(folder)
    except PermissionError:  # nothing in it can be imported
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _states(entry.path)
            elif entry.name.endswith(SUFFIXES) and entry.is_file():  # skips the dangling links that editors use to mark open files
                found = entry.stat()
                yield entry.path, found.st_size, found.st_mtime_ns


def _version() -> bytes:
    """The bytes of the file with the version, without importing it."""
    found = find_spec(PACKAGES[0])
    assert found is not None and found.origin is not None
    return Path(found.origin).read_bytes()


def _folders() -> list[Path]:
    specs = [find_spec(name) for name in PACKAGES]
    return [Path(folder) for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
