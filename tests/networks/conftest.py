"""A cache folder of its own for tests of what is kept for other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.support import kept_data
from ansor.support.settings import cache_part


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only what compilers built is shared: that takes longest, and is not what is looked at here."""
    for part in ("zig", "libraries", "kernels"):
        (tmp_path / part).symlink_to(cache_part(part))
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    return tmp_path
