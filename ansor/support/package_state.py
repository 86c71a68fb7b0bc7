"""What tells one state of this package's files from another, for what is kept between processes and follows from code."""

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
    states = [(str(path), path.stat()) for path in files if path.is_file()]  # not the links to nowhere that editors mark open files with
    told = [(path, found.st_size, found.st_mtime_ns) for path, found in states]
    return hashlib.sha256(repr((_version(), told)).encode()).hexdigest()  # sizes and times may be those of another version, where times are normalised


def _version() -> bytes:
    """The file that says it, without an import."""
    found = find_spec(PACKAGES[0])
    assert found is not None and found.origin is not None
    return Path(found.origin).read_bytes()


def _folders() -> list[Path]:
    specs = [find_spec(name) for name in PACKAGES]
    return [Path(folder) for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
