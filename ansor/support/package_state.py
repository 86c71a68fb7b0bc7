"""Identifies the state of this package's files, for the keys of cached results that depend on its code."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("ansor", "ansor.rules", "ansor.cost_model", "ansor.measure", "ansor.targets")
SUFFIXES = (".py", ".c", ".h", ".gz", ".toml")


@lru_cache(maxsize=1)
def package_state() -> str:
    """A digest of the version, and of the names, sizes and times of all files: milliseconds, where reading them would take a second."""
    files = sorted({path for folder in _folders() for path in folder.rglob("*") if path.suffix in SUFFIXES})
    states = [(str(path), path.stat()) for path in files if path.is_file()]  # not the dangling links with which editors mark open files
    told = [(path, found.st_size, found.st_mtime_ns) for path, found in states]
    return hashlib.sha256(repr((_version(), told)).encode()).hexdigest()  # if times are normalised, two versions may have equal sizes and times


def _version() -> bytes:
    """The bytes of the file with the version, without importing it."""
    found = find_spec(PACKAGES[0])
    assert found is not None and found.origin is not None
    return Path(found.origin).read_bytes()


def _folders() -> list[Path]:
    specs = [find_spec(name) for name in PACKAGES]
    return [Path(folder) for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
