"""A loopback farm of four workers with two keys: two are killed and one is cut off at random moments. Which jobs ran, and what is wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ansor.measure.device import Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import LINK, Failure
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster, child_of
from tests.pretended_device import job

TARGET = parse_target("cpu -threads=1")
KEYS = {"left": ("l1", "l2"), "right": ("r1", "r2")}
KILLED, CUT_OFF = ("l1", "r2"), "r1"
PATIENCE = 4.0
MOST_SECONDS = 60.0
"""Until the next worker is killed."""


@dataclass(frozen=True)
class Ran:
    """Of the jobs of one key: their outcomes, how often each was begun on a device, and what may have been on its way where a worker was killed or cut off."""

    outcomes: Sequence[Observation | Failure]
    begun: Mapping[str, int]
    disturbed: frozenset[str] = frozenset()

    @property
    def costs(self) -> list[float]:
        """Of jobs that have one."""
        return [one.costs[0] for one in self.outcomes if isinstance(one, Observation)]

    @property
    def reported(self) -> list[Failure]:
        """Of jobs that have none."""
        return [one for one in self.outcomes if isinstance(one, Failure)]


def run_jobs(folder: Path, trials: int, milliseconds: float, *, faults: bool, seed: int = 0) -> dict[str, Ran]:
    """So many jobs, half of them for each key, handed out at once."""
    with ThreadPoolExecutor(len(KEYS)) as pool, Cluster(folder, patience=PATIENCE) as cluster:  # where the farm ends, the jobs end
        watchers = {name: cluster.pretended(key, name, milliseconds) for key, names in KEYS.items() for name in names}
        running = {key: pool.submit(_outcomes, cluster, key, folder, trials // 2) for key in KEYS}
        disturbed: dict[str, Sequence[str]] = {}
        if faults:
            draw = random.Random(seed)
            for name, number in [*((name, signal.SIGKILL) for name in KILLED), (CUT_OFF, signal.SIGSTOP)]:
                moment, deadline = draw.randint(1, trials // 10), time.monotonic() + MOST_SECONDS
                while len(cluster.ran(name)) < moment:
                    assert time.monotonic() < deadline, f"{name} has begun {len(cluster.ran(name))} jobs within {MOST_SECONDS:g} s"
                    time.sleep(0.001)
                process = child_of(watchers[name])
                os.kill(process, number)
                disturbed[name] = cluster.ran(name)[-2:]  # one runs, and the answer of the one before may not have arrived
            time.sleep(2 * PATIENCE)
            os.kill(process, signal.SIGCONT)
        found = {key: one.result() for key, one in running.items()}
        return {
            key: Ran(
                found[key], Counter(one for name in names for one in cluster.ran(name)), frozenset(one for name in names for one in disturbed.get(name, ()))
            )
            for key, names in KEYS.items()
        }  # fmt: skip


def _outcomes(cluster: Cluster, key: str, folder: Path, jobs: int) -> list[Observation | Failure]:
    queue = DeviceQueue(open_devices([f"farm://{cluster.url}?key={key}"], TARGET, lambda text: None))
    try:
        futures = [queue.submit(job(folder, str(number + 1))) for number in range(jobs)]
        return [one.result().outcome for one in futures]
    finally:
        queue.close()


def what_is_wrong(ran: Ran, undisturbed: Ran) -> list[str]:
    """Sentences; none where each job was measured exactly once or reported, with the costs that it has where nothing happens."""
    expected = [float(number + 1) for number in range(len(undisturbed.outcomes))]
    twice = {one for one, times in ran.begun.items() if times > 1}
    found = [
        (undisturbed.costs == expected and set(undisturbed.begun.values()) == {1}, "undisturbed, a job was not measured exactly once"),
        (len(ran.outcomes) == len(expected), f"{len(expected)} jobs have {len(ran.outcomes)} outcomes"),
        (len(ran.reported) <= len(ran.disturbed), f"{len(ran.reported)} jobs were reported, and {len(ran.disturbed)} were on lost workers"),
        (all(one.kind in LINK for one in ran.reported), f"jobs were reported as {sorted({one.kind for one in ran.reported})}"),
        (
            all(one.costs == (cost,) for one, cost in zip(ran.outcomes, expected, strict=False) if isinstance(one, Observation)),
            "a job has another cost than undisturbed",
        ),
        (set(ran.begun) == set(undisturbed.begun), "another set of jobs began on the devices than undisturbed"),
        (twice <= ran.disturbed, f"{sorted(twice - ran.disturbed)} began again although no worker was lost with them"),
    ]
    return [text for fine, text in found if not fine]
