"""Whole farms on the loopback interface: nothing is lost, nothing is told twice, and what goes wrong is a sentence."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.farm import session
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import Failure
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster, child_of
from tests.pretended_device import job

TARGET = parse_target("cpu -threads=1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("farm"), patience=3.0) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path / "none"))


def outcomes(text: str, jobs: list[Job], said: list[str]) -> list[Observation | Failure]:
    """What became of jobs, handed out as a measurer does."""
    devices = open_devices([text], TARGET, said.append)
    queue = DeviceQueue(devices, said.append)
    try:
        return [future.result().outcome for future in [queue.submit(one) for one in jobs]]
    finally:
        queue.close()


def costs(found: list[Observation | Failure]) -> list[float]:
    return [one.costs[0] if isinstance(one, Observation) else -1.0 for one in found]


def test_jobs_come_back_once_whatever_dies(cluster: Cluster, tmp_path: Path) -> None:
    """One of three workers is killed and started again, one is stopped, as a network that is cut does."""
    watchers = [cluster.pretended("slow", name, 20) for name in ("one", "two", "three")]
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(outcomes, f"farm://{cluster.url}?key=slow", [job(tmp_path, str(number + 1)) for number in range(120)], said)
        while not cluster.ran("one") or not cluster.ran("two"):
            pass
        os.kill(child_of(watchers[0]), signal.SIGKILL)
        stopped = child_of(watchers[1])
        os.kill(stopped, signal.SIGSTOP)
        found = running.result(timeout=100)
    os.kill(stopped, signal.SIGKILL)
    assert costs(found) == [float(number + 1) for number in range(120)] and said == []
    ran = [one for name in ("one", "two", "three") for one in cluster.ran(name)]
    assert len(set(ran)) == 120 and len(ran) <= 120 + 6  # what ran where a worker died ran again


def test_a_job_that_kills_workers_is_given_up_and_told(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        cluster.pretended("fragile", name, 1)
    found = outcomes(f"farm://{cluster.url}?key=fragile&slots=1", [job(tmp_path, "die"), job(tmp_path, "7")], [])
    assert isinstance(found[0], Failure) and found[0].kind == "link_lost" and "workers died running it" in found[0].text
    assert costs(found[1:]) == [7.0]


def test_a_device_that_loses_runs_is_put_aside_and_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("lossy", "l1", 1)
    cluster.pretended("lossy", "l2", 1)
    said: list[str] = []
    found = outcomes(f"farm://{cluster.url}?key=lossy&slots=2", [job(tmp_path, "lost"), *(job(tmp_path, str(k + 1)) for k in range(8))], said)
    assert isinstance(found[0], Failure) and found[0].kind == "link_lost" and costs(found[1:]) == [float(k + 1) for k in range(8)]


def test_a_throttled_device_is_found_and_its_results_are_not_mixed_in(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("cool", "hot"):
        cluster.pretended("clocked", name, 5, "clock")
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(outcomes, f"farm://{cluster.url}?key=clocked", [job(tmp_path, str(number + 1)) for number in range(100)], said)
        while len(cluster.ran("hot")) < 5:
            pass
        (cluster.folder / "hot.throttled").touch()
        found = running.result(timeout=100)
    assert costs(found) == [float(number + 1) for number in range(100)]  # twice that where it was slow
    assert any("suspended" in line and "2.00 times as long" in line for line in said)
    assert "suspended: a program of known cost" in cluster.run("farm", "status", cluster.url).stdout


def test_sentences(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("mixed", "m1", 1)
    with pytest.raises(DeviceError, match=r"no device with that key is available; there are devices with .*mixed"):
        outcomes(f"farm://{cluster.url}?key=nobody", [], [])
    cluster.pretended("mixed", "m2", 1, "other")
    with pytest.raises(DeviceError, match="their costs do not compare"):
        outcomes(f"farm://{cluster.url}?key=mixed", [], [])
    with pytest.raises(DeviceError, match="no scheduler answers there"):
        outcomes("farm://127.0.0.1:1?key=x", [], [])
    del tmp_path


def test_a_device_that_cannot_be_opened_is_skipped(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker("partly", "nosuch:device")
    with pytest.raises(DeviceError, match="nosuch:device of .* cannot be used: "):
        outcomes(f"farm://{cluster.url}?key=partly", [], [])
    cluster.pretended("partly", "p1", 1)
    said: list[str] = []
    assert costs(outcomes(f"farm://{cluster.url}?key=partly", [job(tmp_path, str(k + 1)) for k in range(6)], said)) == [float(k + 1) for k in range(6)]
    assert "nosuch:device of" in said[0]


def test_a_person_sees_what_devices_did_and_what_is_on_the_way(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("seen", "s1", 1)
    devices = open_devices([f"farm://{cluster.url}?key=seen"], TARGET, lambda text: None)
    queue = DeviceQueue(devices)
    try:
        assert [line.rpartition(": ")[2] for line in queue.lines()] == ["0 jobs done", "0 jobs on the way"]
        for number in range(3):
            queue.submit(job(tmp_path, str(number + 1))).result()
        first, last = queue.lines()
        assert first.startswith("pretended:s1,") and first.endswith(": 3 jobs done") and last == "0 jobs on the way"
    finally:
        queue.close()


def test_status_lists_devices(cluster: Cluster) -> None:
    found = cluster.run("farm", "status", cluster.url)
    assert found.returncode == 0 and "mixed" in found.stdout and max(map(len, found.stdout.splitlines())) <= 80, found.stdout + found.stderr


def test_waits_that_end_early_cost_no_job(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several answers are fetched at a time; a wait that ends meanwhile ends the fetching for all."""
    monkeypatch.setattr(session, "LOOK_SECONDS", 0.02)
    for name in ("h1", "h2", "h3"):
        cluster.pretended("hasty", name, 3)
    said: list[str] = []
    found = outcomes(f"farm://{cluster.url}?key=hasty&slots=12", [job(tmp_path, str(number + 1)) for number in range(200)], said)
    assert costs(found) == [float(number + 1) for number in range(200)] and said == []
