"""Bytes that are kept between processes in a part of the cache folder, each with a digest beside it. A cache that cannot be read or written to keeps none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ansor.errors import AnsorError
from ansor.support import safe_files
from ansor.support.settings import cache_folders, cache_part

ENABLED = True
"""Tests that look at what is kept turn it on."""

DIGITS = 32


def name_of(words: object) -> str:
    """The name for what follows from `words`, whose text says all of it."""
    return safe_files.digest(repr(words).encode())[:DIGITS]


def read(part: str, name: str) -> bytes | None:
    """What was kept by that name; None where nothing was, or where it is damaged."""
    if not ENABLED:
        return None
    with suppress(AnsorError, OSError):
        for folder in cache_folders(part):
            path = safe_files.kept(folder / name, "")
            if path is not None:
                content = path.read_bytes()
                with suppress(OSError):  # a folder that may only be read
                    for one in (folder / name, path):
                        os.utime(one)
                return content
    return None


def write(part: str, name: str, content: bytes, most_bytes: int) -> None:
    """Keep a content. Where all of a part are more than `most_bytes`, those that were not used for longest go."""
    if not ENABLED or len(content) > most_bytes:
        return
    with suppress(AnsorError, OSError):
        folder = cache_part(part)
        safe_files.keep(folder / name, "", content)
        _make_room(folder, most_bytes)


def _make_room(folder: Path, most: int) -> None:
    """Blocks of the disk are counted, of which a small file takes one."""
    found = sorted(((path, path.lstat()) for path in folder.iterdir()), key=lambda one: one[1].st_mtime)
    total = sum(state.st_blocks * 512 for _, state in found)
    for path, state in found:
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= state.st_blocks * 512
