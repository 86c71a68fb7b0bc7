"""What most tests of farms need: a farm on loopback without certificates."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.farm_cluster import Cluster

ABANDONED = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
"""Dask gives up an attempt to connect that takes a busy machine 2 s, or a handshake that nobody answers, and leaves its socket to the garbage collector."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of farms do not fail for such sockets."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings(ABANDONED))


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_to_others() -> Iterator[None]:
    """Collect those sockets before another module's tests run."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("farm")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path / "none"))
