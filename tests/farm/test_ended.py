"""A farm from its first process to its last: a device that gets hot is put aside and comes back, and Ctrl-C and SIGTERM end all of it in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ansor.farm.certificates import make_certificates
from ansor.measure.device import Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster, child_of
from tests.pretended_device import job

SOON = "import ansor.farm.worker as worker; worker.PROBE_SECONDS = 0.5"
SECONDS = 60.0
IMPATIENT = "import ansor.farm.session as session; session.CONNECT_SECONDS = 1.0"


def costs_of(url: str, key: str, folder: Path, numbers: range, said: list[str]) -> list[float]:
    queue = DeviceQueue(open_devices([f"farm://{url}?key={key}"], parse_target("cpu -threads=1"), said.append), said.append)
    try:
        found = [future.result().outcome for future in [queue.submit(job(folder, str(number))) for number in numbers]]
    finally:
        queue.close()
    return [one.costs[0] if isinstance(one, Observation) else -1.0 for one in found]


def told(cluster: Cluster, what: str) -> str:
    """The line of `ansor farm status` with that text, as soon as there is one."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        lines = [line for line in cluster.run("farm", "status", cluster.url).stdout.splitlines() if what in line]
        if lines:
            return lines[0]
    raise AssertionError(f"no device is {what}")


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """The status and last words of a process that the signal ends."""
    os.kill(process.pid, number)
    said, _ = process.communicate(timeout=SECONDS)
    return process.returncode, said.strip()


def is_there(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_a_hot_device_comes_back_and_signals_end_a_farm_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, certificates = range(1, 101), tmp_path / "certificates"
    make_certificates(certificates)
    monkeypatch.setenv("ANSOR_FARM", str(certificates))
    with Cluster(tmp_path / "farm", certificates) as cluster:
        cool, hot = (cluster.worker("clocked", f"pretended:{name},{cluster.folder},5,clock", pretends=SOON) for name in ("cool", "hot"))
        said: list[str] = []
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(costs_of, cluster.url, "clocked", tmp_path, jobs, said)
            while len(cluster.ran("hot")) < 5:
                time.sleep(0.01)
            (cluster.folder / "hot.throttled").touch()
            assert running.result(timeout=100) == [float(number) for number in jobs]
        assert any("hot" in line and "2.00 times as long" in line for line in said)
        assert "clocked" in told(cluster, "suspended")

        before = len(cluster.ran("hot"))
        (cluster.folder / "hot.throttled").unlink()
        assert hot.stdout is not None
        while "serves" not in hot.stdout.readline():  # it is probed, and joins again
            pass
        assert costs_of(cluster.url, "clocked", tmp_path, jobs, said) == [float(number) for number in jobs]
        assert len(cluster.ran("hot")) > before

        children = [child_of(cool), child_of(hot)]
        assert ended(cool, signal.SIGTERM)[0] == 0
        assert ended(hot, signal.SIGINT)[0] == 0
        assert not any(map(is_there, children))
        assert ended(cluster.scheduler, signal.SIGINT) == (130, "ansor: stopped by Ctrl-C")
        left = cluster.run("farm", "status", cluster.url, pretends=IMPATIENT)
        assert left.returncode == 1 and "no scheduler answers there" in left.stderr


def test_a_worker_whose_device_does_not_close_ends_all_the_same(tmp_path: Path) -> None:
    hangs = "import time, ansor.farm.worker as worker; worker.CLOSING_SECONDS = 1.0; worker.Station.close = lambda self: time.sleep(1e6)"
    with Cluster(tmp_path / "farm") as cluster:
        worker = cluster.worker("stuck", f"pretended:stuck,{cluster.folder},1", pretends=hangs)
        child = child_of(worker)
        status, said = ended(worker, signal.SIGTERM)
        assert status == 0 and said.endswith("the worker did not close within 1 s; it ends without")
        assert not is_there(child)


def test_a_worker_whose_supervisor_ended_before_it_started_ends(tmp_path: Path) -> None:
    with Cluster(tmp_path / "farm") as cluster:
        ran = cluster.run("farm", "worker", cluster.url, "--key", "left", "--device", f"pretended:left,{cluster.folder},1", "--supervised", str(2**30))
        assert ran.returncode == 0, ran.stderr


def test_a_worker_whose_connections_do_not_close_ends_in_order(tmp_path: Path) -> None:
    hangs = ("import asyncio, ansor.farm.worker as worker, distributed.core as core; worker.LEAVE_SECONDS = 1.0; "
             "core.ConnectionPool.close = lambda self: asyncio.sleep(1e6)")  # fmt: skip
    with Cluster(tmp_path / "farm") as cluster:
        status, said = ended(cluster.worker("stuck", f"pretended:stuck,{cluster.folder},1", pretends=hangs), signal.SIGTERM)
        assert status == 0 and "it ends without" not in said
