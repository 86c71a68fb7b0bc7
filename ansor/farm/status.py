"""The devices of a farm and their state, for display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansor.farm import station
from ansor.farm.address import FarmText, Place
from ansor.farm.session import connect, dashboard_of
from ansor.farm.versions import difference
from ansor.farm.worker import ASIDE
from ansor.support.text import clip

STATUS_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a device did: jobs, how many of them failed, and how many ended in the last 60 seconds."""

    jobs: int = 0
    failures: int = 0
    last_minute: int = 0
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """One device of a farm. address: of its worker. key: without the mark of those that are suspended. quarantined: why it gets no jobs, '' where it does."""

    address: str
    key: str
    device: str
    busy: bool
    done: Done
    quarantined: str = ""


@dataclass(frozen=True, slots=True)
class FarmStatus:
    """All devices, and jobs that wait for one, by key; dashboard: its address, or ''."""

    devices: tuple[DeviceStatus, ...]
    waiting: int
    dashboard: str = ""


def farm_status(place: Place) -> FarmStatus:
    """Ask the scheduler and all workers. Raises DeviceError when no scheduler answers."""
    client = connect(FarmText(place.url, place, ""))
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        said = client.run(station.status, on_error="return") if workers else {}
        busy = client.processing()
        devices = tuple(_device(address, one, said.get(address), len(busy.get(address, ()))) for address, one in sorted(workers.items()))
        waiting = sum(max(0, len(tasks) - 1) for tasks in busy.values())
        return FarmStatus(devices, waiting, dashboard_of(client))
    finally:
        client.close(timeout=5)


def _device(address: str, worker: Mapping[str, Any], said: object, tasks: int) -> DeviceStatus:
    key = next(iter(worker["resources"]), "?").removeprefix(ASIDE)
    if isinstance(said, dict) and difference(said):
        return _stranger(address, key, tasks, f"it has {difference(said)}")
    try:
        return _read(address, key, tasks, said)
    except (KeyError, TypeError, ValueError):
        return _stranger(address, key, tasks, f"it does not answer as a worker of ansor does: {said}")


def _read(address: str, key: str, tasks: int, said: Any) -> DeviceStatus:
    """Of what `station.status` says. Raises KeyError, TypeError or ValueError for another thing."""
    done = Done(int(said["jobs"]), int(said["failures"]), int(said["last_minute"]), str(said["last_failure"]))
    return DeviceStatus(address, key, str(said["device"]), tasks > 0, done, str(said["quarantined"]))


def _stranger(address: str, key: str, tasks: int, why: str) -> DeviceStatus:
    return DeviceStatus(address, key, "?", tasks > 0, Done(last_failure=clip(why, 200)))
