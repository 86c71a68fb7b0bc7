"""Libraries of kernels that were built before, in the cache folder: the same text for the same processor is not compiled again.

Each has its digest beside it, and is loaded only if nobody else could have written it. Of many, those that were not used for longest go.
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
"""Files in the folder, two for each kernel; a quarter of them goes when there are more."""


def known_kernel(source: CSource, toolchain: Toolchain) -> Path | None:
    """The library of a kernel that was built before, if it is kept."""
    name = _name(source, toolchain)
    if not name:
        return None
    with suppress(AnsorError, OSError):
        for folder in cache_folders(FOLDER):
            path = safe_files.kept(folder / name, SUFFIX)
            if path is not None:
                with suppress(OSError):  # a folder that may only be read
                    (folder / name).touch()
                    path.touch()
                return path
    return None


def keep_kernel(source: CSource, toolchain: Toolchain, library: Path) -> None:
    """Keep a library. A cache that cannot be written to keeps none."""
    name = _name(source, toolchain)
    with suppress(AnsorError, OSError):
        if name:
            folder = cache_part(FOLDER)
            safe_files.keep(folder / name, SUFFIX, library.read_bytes())
            safe_files.make_room(folder, MOST)


def _name(source: CSource, toolchain: Toolchain) -> str:
    """What a library follows from; '' for toolchains of others, of which we do not know all."""
    if not isinstance(toolchain, CToolchain):
        return ""
    words = (source.text, source.entry, toolchain.version, toolchain.compiler.command, toolchain.flags, processor_kind())
    return safe_files.digest(repr(words).encode())[:DIGITS]
