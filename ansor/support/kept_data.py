"""Keeps bytes between processes in a part of the cache folder, with their digests. If the cache cannot be read or written, nothing is kept."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ansor.errors import AnsorError
from ansor.support import safe_files
from ansor.support.settings import cache_folders, cache_part

ENABLED = True
"""Off in tests, except those of the cache."""

DIGITS = 32


def name_of(words: object) -> str:
    """The name for content that `words` determine. Different words must have different texts."""
    return safe_files.digest(repr(words).encode())[:DIGITS]


def read(part: str, name: str) -> bytes | None:
    """The content kept under a name; None if there is none, or if it is damaged."""
    if not ENABLED:
        return None
    with suppress(AnsorError, OSError):
        for folder in cache_folders(part):
            found = safe_files.kept_content(folder / name, "")
            if found is not None:
                path, content = found
                with suppress(OSError):  # the folder may be read-only
                    for one in (folder / name, path):
                        os.utime(one)
                return content
    return None


def write(part: str, name: str, content: bytes, most_bytes: int) -> None:
    """Keep content under a name. If a part has more than `most_bytes` in total, its least recently used files are removed."""
    if not ENABLED or len(content) > most_bytes:
        return
    with suppress(AnsorError, OSError):
        folder = cache_part(part)
        safe_files.keep(folder / name, "", content)
        _make_room(folder, most_bytes)


def _make_room(folder: Path, most: int) -> None:
    """Remove the least recently used files. Counts disk blocks, as even a small file takes one."""
    found = sorted(((path, path.lstat()) for path in folder.iterdir()), key=lambda one: one[1].st_mtime)
    total = sum(state.st_blocks * 512 for _, state in found)
    for path, state in found:
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= state.st_blocks * 512
