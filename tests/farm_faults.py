"""A loopback farm of four workers with two keys, of which two are killed and one is disconnected at random moments: which jobs ran, and what is wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import LINK, Failure
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster, child_of
from tests.pretended_device import job

Run = Callable[[Job], Observation | Failure]

TARGET = parse_target("cpu -threads=1")
KEYS = {"left": ("l1", "l2"), "right": ("r1", "r2")}
KILLED, CUT_OFF = ("l1", "r2"), "r1"
PATIENCE = 4.0
NOTICED_SECONDS = 0.1  # by then the scheduler knows that a worker was killed; before, it may not know yet that the client has a result
MOST_SECONDS = 60.0
"""Seconds until the next worker is killed."""


@dataclass(frozen=True)
class Ran:
    """The jobs of one key: their outcomes, how often each was begun on a device, and which were in flight while a worker was lost."""

    outcomes: Sequence[Observation | Failure]
    begun: Mapping[str, int]
    disturbed: frozenset[str] = frozenset()

    @property
    def costs(self) -> list[float]:
        """The costs of jobs that have one."""
        return [one.costs[0] for one in self.outcomes if isinstance(one, Observation)]

    @property
    def reported(self) -> list[Failure]:
        """The failures of jobs without a cost."""
        return [one for one in self.outcomes if isinstance(one, Failure)]


def run_jobs(folder: Path, trials: int, milliseconds: float, *, faults: bool, seed: int = 0) -> dict[str, Ran]:
    """Run this many jobs, half of them for each key, submitted at once."""
    with ThreadPoolExecutor(len(KEYS)) as pool, Cluster(folder, patience=PATIENCE) as cluster:  # the jobs end when the farm does
        watchers = {name: cluster.pretended(key, name, milliseconds) for key, names in KEYS.items() for name in names}
        flights = {key: Flight() for key in KEYS}
        running = {key: pool.submit(_outcomes, cluster, key, flights[key], trials // 2) for key in KEYS}
        lost: list[tuple[str, float]] = []
        if faults:
            draw = random.Random(seed)
            for name, number in [*((name, signal.SIGKILL) for name in KILLED), (CUT_OFF, signal.SIGSTOP)]:
                moment, deadline = draw.randint(1, trials // 10), time.monotonic() + MOST_SECONDS
                while len(cluster.ran(name)) < moment:
                    assert time.monotonic() < deadline, f"{name} has begun {len(cluster.ran(name))} jobs within {MOST_SECONDS:g} s"
                    time.sleep(0.001)
                process = child_of(watchers[name])
                os.kill(process, number)
                lost.append((name, time.monotonic()))
            time.sleep(PATIENCE / 2)
            lost.append((CUT_OFF, time.monotonic()))  # by now it may have got other jobs, as the loss has not been noticed yet
            time.sleep(2 * PATIENCE)
            os.kill(process, signal.SIGCONT)
        found = {key: one.result() for key, one in running.items()}
        return {
            key: Ran(
                found[key], Counter(one for name in names for one in cluster.ran(name)),
                frozenset(one for name, moment in lost if name in names for one in flights[key].around(moment)),
            )
            for key, names in KEYS.items()
        }  # fmt: skip


class Flight:
    """When jobs of a key were in flight between its slots and devices."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float]] = []
        self._ended: list[tuple[str, float]] = []

    def watched(self, run: Run) -> Run:
        """A slot's `run` that records its jobs here."""

        def seen(job: Job) -> Observation | Failure:
            name = f"job {job.artifact.path.name}"
            self._begun.append((name, time.monotonic()))
            try:
                return run(job)
            finally:
                self._ended.append((name, time.monotonic()))

        return seen

    def around(self, moment: float) -> frozenset[str]:
        """The jobs in flight within NOTICED_SECONDS of that moment, which have passed."""
        over = {name for name, when in self._ended if when < moment - NOTICED_SECONDS}
        return frozenset(name for name, when in self._begun if when < moment + NOTICED_SECONDS and name not in over)


def _outcomes(cluster: Cluster, key: str, flight: Flight, jobs: int) -> list[Observation | Failure]:
    folder = cluster.folder / f"jobs-{key}"  # the jobs of both keys have the same names, and files are written while others are read
    folder.mkdir()
    devices = open_devices([f"farm://{cluster.url}?key={key}"], TARGET, lambda text: None)
    for one in devices:
        one.run = flight.watched(one.run)  # type: ignore[method-assign, assignment]  # for this test only
    queue = DeviceQueue(devices)
    try:
        futures = [queue.submit(job(folder, str(number + 1))) for number in range(jobs)]
        return [one.result().outcome for one in futures]
    finally:
        queue.close()


def what_is_wrong(ran: Ran, undisturbed: Ran) -> list[str]:
    """Sentences about what is wrong; none if each job was measured exactly once or reported, with the same costs as without faults."""
    expected = [float(number + 1) for number in range(len(undisturbed.outcomes))]
    twice = {one for one, times in ran.begun.items() if times > 1}
    reported = {f"job {number + 1}" for number, one in enumerate(ran.outcomes) if isinstance(one, Failure)}
    found = [
        (undisturbed.costs == expected and set(undisturbed.begun.values()) == {1}, "undisturbed, a job was not measured exactly once"),
        (len(ran.outcomes) == len(expected), f"{len(expected)} jobs have {len(ran.outcomes)} outcomes"),
        (reported <= ran.disturbed, f"{sorted(reported - ran.disturbed)} were reported although no worker was lost while they were in flight"),
        (all(one.kind in LINK for one in ran.reported), f"jobs were reported as {sorted({one.kind for one in ran.reported})}"),
        (
            all(one.costs == (cost,) for one, cost in zip(ran.outcomes, expected, strict=False) if isinstance(one, Observation)),
            "a job has another cost than undisturbed",
        ),
        (set(ran.begun) == set(undisturbed.begun), "another set of jobs began on the devices than undisturbed"),
        (twice <= ran.disturbed, f"{sorted(twice - ran.disturbed)} began again although no worker was lost while they were in flight"),
    ]
    return [text for fine, text in found if not fine]
