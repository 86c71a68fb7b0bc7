"""What most tests of farms need: a farm on loopback without certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.farm_cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("farm")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path / "none"))
