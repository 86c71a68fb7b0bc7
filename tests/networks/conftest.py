"""A cache folder of its own for tests of what is kept for other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.support import kept_data
from tests.networks.caches import with_compilers


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone: see `with_compilers`."""
    monkeypatch.setenv("ANSOR_CACHE", str(with_compilers(tmp_path)))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    return tmp_path
