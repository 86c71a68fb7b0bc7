"""Connections that never show a certificate: they are closed, and keep nobody out, however many they are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # of Dask
import pytest

from ansor.farm.address import read_place
from ansor.farm.certificates import make_certificates
from ansor.farm.status import farm_status
from tests.farm_cluster import Cluster

FILES = 256
FEW_FILES = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("farm") / "certificates"
    make_certificates(place)
    return place


@contextmanager
def silent(url: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    host, _, port = url.removeprefix("tls://").rpartition(":")
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(count)]


def is_closed(line: socket.socket) -> bool:
    """Waits for the other side to close it."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


def joined(cluster: Cluster, folder: Path) -> list[str]:
    """The devices that a client sees which connects now."""
    return sorted(one.key for one in farm_status(read_place(cluster.url, str(folder))).devices)


def test_silent_connections_are_closed(folder: Path, tmp_path: Path) -> None:
    with Cluster(tmp_path, folder, options=("--handshake", "3")) as cluster:
        cluster.pretended("before", "one", 1)
        worker = farm_status(read_place(cluster.url, str(folder))).devices[0].address
        with silent(cluster.url, 50) as lines, silent(worker, 5) as at_worker:
            cluster.pretended("meanwhile", "two", 1)
            assert joined(cluster, folder) == ["before", "meanwhile"]
            assert all(map(is_closed, [*lines, *at_worker]))
        cluster.pretended("afterwards", "three", 1)
        assert joined(cluster, folder) == ["afterwards", "before", "meanwhile"]


def test_more_silent_connections_than_open_files_keep_nobody_out(folder: Path, tmp_path: Path) -> None:
    """No time ends here: the oldest connections make room."""
    with Cluster(tmp_path, folder, pretends=FEW_FILES, options=("--handshake", "3600")) as cluster, silent(cluster.url, 300) as lines:
        cluster.pretended("meanwhile", "one", 1)
        assert joined(cluster, folder) == ["meanwhile"] and psutil.Process(cluster.scheduler.pid).num_fds() < FILES // 2
        assert all(map(is_closed, lines[: 300 - FILES // 4]))
