"""Whole farms on the loopback interface: nothing is lost, nothing is told twice, and what goes wrong is a sentence."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansor.errors import DeviceError
from ansor.farm import session
from ansor.farm.address import read_farm
from ansor.farm.session import connect
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import Failure
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster, child_of
from tests.pretended_device import job

TARGET = parse_target("cpu -threads=1")
LOOK_SECONDS = 0.002  # between two looks at what goes on: the processes that are waited for need the processor


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("farm"), patience=3.0) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def workers_of_a_test(cluster: Cluster) -> Iterator[None]:
    started = len(cluster.processes)
    yield
    cluster.end(started)


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
            time.sleep(LOOK_SECONDS)
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
    assert isinstance(found[0], Failure) and found[0].kind == "link_lost" and "workers died while they had the job" in found[0].text
    assert costs(found[1:]) == [7.0]


def test_a_device_that_loses_runs_is_suspended_and_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
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
            time.sleep(LOOK_SECONDS)
        (cluster.folder / "hot.throttled").touch()
        found = running.result(timeout=100)
    assert costs(found) == [float(number + 1) for number in range(100)]  # twice that where it was slow
    assert any("suspended" in line and "2.00 times as long" in line for line in said)
    assert "suspended: a program of known cost" in cluster.run("farm", "status", cluster.url).stdout


def test_what_ran_before_a_throttled_device_is_found_is_measured_elsewhere(cluster: Cluster, tmp_path: Path) -> None:
    """With a canary for every eight jobs, the device runs three well ones and five slow ones before it is found."""
    cluster.pretended("shifts", "warm", 3, "clock", "hot=11")
    for name in ("fine1", "fine2"):
        cluster.pretended("shifts", name, 3, "clock")
    said: list[str] = []
    found = outcomes(f"farm://{cluster.url}?key=shifts&canary=8", [job(tmp_path, str(number + 1)) for number in range(150)], said)
    assert costs(found) == [float(number + 1) for number in range(150)]
    assert any("suspended" in line and "2.00 times as long as usual" in line for line in said)
    elsewhere = [*cluster.ran("fine1"), *cluster.ran("fine2")]
    assert len(cluster.ran("warm")) == 16 and set(cluster.ran("warm")[8:]) <= set(elsewhere) and not set(cluster.ran("warm")[:8]) & set(elsewhere)


def test_a_device_that_is_slow_from_its_start_is_found_by_the_others(cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ansor")
    cluster.pretended("starting", "slow", 3, "clock", "hot=0")
    said: list[str] = []
    text = f"farm://{cluster.url}?key=starting"
    assert costs(outcomes(text, [job(tmp_path, "5")], said)) == [10.0]
    assert not said and "is the only device" in caplog.text and "slow from its start is not found" in caplog.text
    before = len(cluster.ran("slow"))
    cluster.pretended("starting", "usual", 3, "clock")
    said.clear()
    assert costs(outcomes(text, [job(tmp_path, str(number + 1)) for number in range(40)], said)) == [float(number + 1) for number in range(40)]
    assert any("suspended" in line and "2.00 times as long as on the others of its key" in line for line in said)
    assert len(cluster.ran("slow")) == before


def test_a_device_that_is_slow_and_joins_later_is_found_by_the_others(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("later", "there", 10, "clock")
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        jobs = [job(tmp_path, str(number + 1)) for number in range(400)]
        running = pool.submit(outcomes, f"farm://{cluster.url}?key=later&slots=6", jobs, said)
        cluster.pretended("later", "slower", 10, "clock", "hot=0")
        found = running.result(timeout=100)
    assert costs(found) == [float(number + 1) for number in range(400)]
    assert cluster.ran("slower") and set(cluster.ran("slower")) <= set(cluster.ran("there"))
    assert any("slower" in line and "as on the others of its key" in line for line in said)


def test_a_device_that_never_answers_is_suspended_and_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker("hanging", f"pretended:stuck,{cluster.folder},3,hangs", pretends="import ansor.farm.station as station; station.PATIENCE_SECONDS = 1.0")
    for name in ("goes", "on"):
        cluster.pretended("hanging", name, 3)
    said: list[str] = []
    devices = open_devices([f"farm://{cluster.url}?key=hanging"], TARGET, said.append)
    try:
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(devices[0].run, [job(tmp_path, str(number + 1)) for number in range(100)]))
    finally:
        devices[0].close()
    lost = [one for one in found if isinstance(one, Failure)]
    assert len(lost) == len(cluster.ran("stuck")) == 1 and lost[0].kind == "link_lost" and "did not answer within 1 s" in lost[0].text
    assert sum(cost > 0 for cost in costs(found)) == 99
    assert "did not answer within 1 s" in cluster.run("farm", "status", cluster.url).stdout.replace("\n  ", " ")


def test_a_worker_that_was_cut_off_comes_back_and_its_late_answer_does_not_count(cluster: Cluster, tmp_path: Path) -> None:
    watchers = [cluster.pretended("cut", name, 50) for name in ("off", "off-not")]
    devices = open_devices([f"farm://{cluster.url}?key=cut"], TARGET, lambda text: None)
    queue = DeviceQueue(devices)
    try:
        futures = [queue.submit(job(tmp_path, str(number + 1))) for number in range(40)]
        while not cluster.ran("off"):
            time.sleep(LOOK_SECONDS)
        stopped = child_of(watchers[0])
        os.kill(stopped, signal.SIGSTOP)
        assert costs([one.result(timeout=300).outcome for one in futures]) == [float(number + 1) for number in range(40)]
        before = len(cluster.ran("off"))
        os.kill(stopped, signal.SIGCONT)
        more = 0
        while len(cluster.ran("off")) < before + 5:  # it gets jobs again
            more += 1
            assert more < 2000
            assert costs([queue.submit(job(tmp_path, str(100 + number))).result(timeout=300).outcome for number in range(2)]) == [100.0, 101.0]
        done = sum(int(line.rpartition(": ")[2].split()[0]) for line in queue.lines()[:-1])
        assert done == 40 + 2 * more and child_of(watchers[0]) == stopped
    finally:
        queue.close()


def test_two_runs_share_a_farm_evenly(cluster: Cluster, tmp_path: Path) -> None:
    """With equal demand, what one has done when the other ends is at least half as much."""
    for name in ("x", "y", "z"):
        cluster.pretended("shared", name, 10)
    queues = [DeviceQueue(open_devices([f"farm://{cluster.url}?key=shared"], TARGET, lambda text: None)) for _ in range(2)]
    jobs = [[job(tmp_path, f"{run}000{number}") for number in range(100)] for run in (1, 2)]
    try:
        futures = [[queue.submit(one) for one in several] for queue, several in zip(queues, jobs, strict=True)]
        while not any(all(one.done() for one in several) for several in futures):
            time.sleep(LOOK_SECONDS)
        done = sorted(sum(one.done() for one in several) for several in futures)
        assert done[1] == 100 and done[0] >= 50
    finally:
        for queue in queues:
            queue.close()


def test_sentences(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.pretended("mixed", "m1", 1)
    with pytest.raises(DeviceError, match=r"no device with that key is available; there are devices with .*mixed"):
        outcomes(f"farm://{cluster.url}?key=nobody", [], [])
    cluster.pretended("mixed", "m2", 1, "other")
    with pytest.raises(DeviceError, match="their costs are not comparable"):
        outcomes(f"farm://{cluster.url}?key=mixed", [], [])
    monkeypatch.setattr(session, "CONNECT_SECONDS", 1.0)
    with pytest.raises(DeviceError, match="no scheduler answers there"):
        outcomes("farm://127.0.0.1:1?key=x", [], [])


def test_a_run_that_goes_on_with_other_devices_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    started = len(cluster.processes)
    cluster.pretended("changing", "before", 1)
    device = open_devices([f"farm://{cluster.url}?key=changing&slots=1"], TARGET, lambda text: None)[0]
    assert isinstance(device.run(job(tmp_path, "1")), Observation)
    device.close()
    assert isinstance(device.run(job(tmp_path, "2")), Observation)
    device.close()
    cluster.end(started)
    cluster.pretended("changing", "now", 1, "other")
    with pytest.raises(DeviceError, match="the devices with that key are another machine, instructions now: start another run"):
        device.run(job(tmp_path, "3"))


def test_a_device_that_cannot_be_opened_is_skipped(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("partly", "p0", 1, "absent")
    with pytest.raises(DeviceError, match="p0,.*,absent of .* cannot be used: .*which is absent"):
        outcomes(f"farm://{cluster.url}?key=partly", [], [])
    cluster.pretended("partly", "p1", 1)
    said: list[str] = []
    assert costs(outcomes(f"farm://{cluster.url}?key=partly", [job(tmp_path, str(k + 1)) for k in range(6)], said)) == [float(k + 1) for k in range(6)]
    assert "absent of" in said[0]


def test_a_result_names_its_device_and_machine(cluster: Cluster, tmp_path: Path) -> None:
    device = f"pretended:n1,{cluster.folder},1"
    cluster.worker("named", device)
    right, wrong = outcomes(f"farm://{cluster.url}?key=named", [job(tmp_path, "1"), job(tmp_path, "wrong")], [])
    assert isinstance(right, Observation) and isinstance(wrong, Failure) and wrong.kind == "wrong_answer"
    assert right.measured_by == wrong.measured_by == f"{device} on {platform.node()}"


def test_machines_of_one_key_have_the_same_processor(cluster: Cluster) -> None:
    cluster.worker("machines", "local")
    cluster.worker("machines", "local", pretends="import ansor.farm.station as station; station.processor_identity = lambda: 'another processor'")
    with pytest.raises(DeviceError, match=r"where devices differ: .*local \(local, another processor, seconds\).*; their costs are not comparable"):
        outcomes(f"farm://{cluster.url}?key=machines", [], [])


def test_a_person_sees_what_devices_did_and_what_is_on_the_way(cluster: Cluster, tmp_path: Path) -> None:
    cluster.pretended("seen", "s1", 1)
    devices = open_devices([f"farm://{cluster.url}?key=seen"], TARGET, lambda text: None)
    queue = DeviceQueue(devices)
    try:
        assert [line.rpartition(": ")[2] for line in queue.lines()] == ["0 jobs done", "0 jobs in flight"]
        for number in range(3):
            queue.submit(job(tmp_path, str(number + 1))).result()
        first, last = queue.lines()
        assert first.startswith("pretended:s1,") and first.endswith(": 3 jobs done") and last == "0 jobs in flight"
    finally:
        queue.close()


def test_a_farm_that_runs_for_long_keeps_nothing_of_its_jobs(cluster: Cluster, tmp_path: Path) -> None:
    """Jobs that come one by one: between them the farm is idle."""

    def kept_by_scheduler(dask_scheduler: Any) -> int:
        spans = dask_scheduler.extensions.get("spans")
        return len(dask_scheduler.task_prefixes) + (len(spans.spans) if spans else 0)

    def kept_by_worker(dask_worker: Any) -> int:
        return sum(isinstance(name, tuple) and name[0] == "execute" for name in dask_worker.digests_total)

    cluster.pretended("long", "one", 1)
    device = open_devices([f"farm://{cluster.url}?key=long&slots=1"], TARGET, lambda text: None)[0]
    client = connect(read_farm(f"farm://{cluster.url}?key=long"))
    kept = []
    try:
        for number in range(10):
            assert isinstance(device.run(job(tmp_path, str(number + 1))), Observation)
            kept.append((client.run_on_scheduler(kept_by_scheduler), *client.run(kept_by_worker).values()))
    finally:
        device.close()
        client.close()
    assert kept[3:] == [kept[3]] * 7


def test_status_lists_devices(cluster: Cluster) -> None:
    cluster.pretended("listed", "one", 1)
    found = cluster.run("farm", "status", cluster.url)
    assert found.returncode == 0 and "listed" in found.stdout and max(map(len, found.stdout.splitlines())) <= 80, found.stdout + found.stderr


def test_waits_that_end_early_cost_no_job(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several answers are fetched at a time; a wait that ends meanwhile ends the fetching for all."""
    monkeypatch.setattr(session, "LOOK_SECONDS", 0.02)
    for name in ("h1", "h2", "h3"):
        cluster.pretended("hasty", name, 3)
    said: list[str] = []
    found = outcomes(f"farm://{cluster.url}?key=hasty&slots=12", [job(tmp_path, str(number + 1)) for number in range(200)], said)
    assert costs(found) == [float(number + 1) for number in range(200)] and said == []
