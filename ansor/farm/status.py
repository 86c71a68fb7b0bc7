"""The devices of a farm and their state, for display."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansor.farm import station
from ansor.farm.address import SUSPENDED, FarmText, SchedulerAddress
from ansor.farm.session import connect, dashboard_of
from ansor.farm.versions import difference
from ansor.support.text import clip

if TYPE_CHECKING:
    from distributed import Client

STATUS_SECONDS = 20.0  # of one worker
MOST_ASKED = 64  # workers at a time


@dataclass(frozen=True, slots=True)
class JobCounts:
    """What a device did: jobs, how many of them failed, and how many ended in the last 60 seconds."""

    jobs: int = 0
    failures: int = 0
    last_minute: int = 0
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """One device of a farm. address: of its worker. key: without the prefix for suspended devices. suspended: why it gets no jobs; '' if it does."""

    address: str
    key: str
    device: str
    busy: bool
    done: JobCounts
    suspended: str = ""


@dataclass(frozen=True, slots=True)
class FarmStatus:
    """The state of a farm. devices: by address of their worker; waiting: the number of jobs that wait for a device; dashboard: its address, or ''."""

    devices: tuple[DeviceStatus, ...]
    waiting: int
    dashboard: str = ""


def farm_status(place: SchedulerAddress) -> FarmStatus:
    """Query the scheduler and all workers; workers that do not answer are listed with the reason. Raises DeviceError if no scheduler answers."""
    client = connect(FarmText(place.url, place, ""))
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        said = client.sync(_said_by_all, client, tuple(workers))
        busy = client.processing()
        devices = tuple(_device(address, one, said.get(address), len(busy.get(address, ()))) for address, one in sorted(workers.items()))
        waiting = sum(max(0, len(tasks) - 1) for tasks in busy.values())
        return FarmStatus(devices, waiting, dashboard_of(client))
    finally:
        client.close(timeout=5)


async def _said_by_all(client: Client, workers: Sequence[str]) -> Mapping[str, object]:
    """Each worker's answer, or the error instead."""
    asking = asyncio.Semaphore(MOST_ASKED)

    async def said_by(worker: str) -> object:
        async with asking:
            try:
                said: Mapping[str, object] = await asyncio.wait_for(client.run(station.status, workers=[worker]), STATUS_SECONDS)
                return said[worker]
            except TimeoutError:
                return TimeoutError(f"nothing within {STATUS_SECONDS:g} s")
            except Exception as error:  # whatever it raised
                return error

    return dict(zip(workers, await asyncio.gather(*map(said_by, workers)), strict=True))


def _device(address: str, worker: Mapping[str, Any], said: object, tasks: int) -> DeviceStatus:
    key = next(iter(worker["resources"]), "?").removeprefix(SUSPENDED)
    if isinstance(said, dict) and difference(said):
        return _stranger(address, key, tasks, f"it has {difference(said)}")
    if isinstance(said, TimeoutError):
        return _stranger(address, key, tasks, f"it does not answer: {said}")
    try:
        return _read(address, key, tasks, said)
    except (KeyError, TypeError, ValueError):
        return _stranger(address, key, tasks, f"it does not answer as a worker of ansor does: {said}")


def _read(address: str, key: str, tasks: int, said: Any) -> DeviceStatus:
    """The status in an answer of `station.status`. Raises KeyError, TypeError or ValueError for anything else."""
    done = JobCounts(int(said["jobs"]), int(said["failures"]), int(said["last_minute"]), str(said["last_failure"]))
    return DeviceStatus(address, key, str(said["device"]), tasks > 0, done, str(said["suspended"]))


def _stranger(address: str, key: str, tasks: int, why: str) -> DeviceStatus:
    return DeviceStatus(address, key, "?", tasks > 0, JobCounts(last_failure=clip(why, 200)))
