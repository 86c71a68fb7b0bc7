"""Caches the libraries of built kernels: the same text for the same processor is not compiled again.

Each library has its digest beside it, and is loaded only if nobody else could have written it. The least recently used ones are removed first.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import processor_kind
from ansor.errors import AnsorError
from ansor.support import safe_files
from ansor.support.settings import cache_folders, cache_part

FOLDER, SUFFIX = "kernels", ".so"
DIGITS = 32
MOST = 4000
"""The most files in the folder, two per kernel; beyond that a quarter of them is removed."""


def known_kernel(source: CSource, toolchain: Toolchain) -> Path | None:
    """The cached library of a kernel, if there is one."""
    name = _name(source, toolchain)
    if not name:
        return None
    with suppress(AnsorError, OSError):
        for folder in cache_folders(FOLDER):
            path = safe_files.kept(folder / name, SUFFIX)
            if path is not None:
                with suppress(OSError):  # a read-only folder
                    (folder / name).touch()
                    path.touch()
                return path
    return None


def keep_kernel(source: CSource, toolchain: Toolchain, library: Path) -> None:
    """Cache a library, unless the cache is not writable."""
    name = _name(source, toolchain)
    with suppress(AnsorError, OSError):
        if name:
            folder = cache_part(FOLDER)
            safe_files.keep(folder / name, SUFFIX, library.read_bytes())
            safe_files.make_room(folder, MOST)


def _name(source: CSource, toolchain: Toolchain) -> str:
    """A name derived from all inputs of a build; '' for foreign toolchains, whose inputs we do not know."""
    if not isinstance(toolchain, CToolchain):
        return ""
    words = (source.text, source.entry, toolchain.version, toolchain.compiler.command, toolchain.flags, processor_kind())
    return safe_files.digest(repr(words).encode())[:DIGITS]
