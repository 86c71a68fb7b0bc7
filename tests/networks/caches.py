"""Cache folders in which nothing of networks is kept yet."""

from __future__ import annotations

from pathlib import Path

from ansor.support.settings import cache_part


def with_compilers(folder: Path) -> Path:
    """The folder as a cache where only what compilers built is shared: that takes longest, and is not what is looked at here."""
    for part in ("zig", "libraries", "kernels"):
        (folder / part).symlink_to(cache_part(part))
    return folder
