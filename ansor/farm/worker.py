"""A worker of a farm: a process with one device that joins a scheduler. While its device is suspended, it joins under a key that no job can request."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansor.errors import DeviceError
from ansor.farm.address import SUSPENDED, SchedulerAddress, loopback_of, security
from ansor.farm.reach import reached
from ansor.farm.scheduler import configure
from ansor.farm.station import Station, become
from ansor.farm.supervisor import ENDS, unblock_signals
from ansor.farm.versions import scheduler_difference
from ansor.measure.work_directory import WorkDirectory

PROBE_SECONDS = 10.0
JOIN_SECONDS = 30.0
REACH_SECONDS = 5.0
AGAIN_SECONDS = 2.0
ANSWER_SECONDS = 0.5
CLOSING_SECONDS = 20.0
"""How long a worker that was told to end may take to close its device and its connection, either of which may hang. Then it ends without."""

LEAVE_SECONDS = 10.0
"""How long it may take to leave the scheduler."""

AGAIN = "; trying again"
"""The end of messages that say why a worker could not join."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker serves: the farm, the key and the text of its device. supervisor: the number of the process that started this one."""

    place: SchedulerAddress
    key: str
    device: str
    supervisor: int


def serve(settings: WorkerSettings, say: Say) -> None:
    """Run a worker until Ctrl-C or SIGTERM."""
    from ansor.farm import listener

    configure()
    listener.install()
    with WorkDirectory() as work, suppress(asyncio.CancelledError):
        asyncio.run(_serve(settings, work.path, say))


async def _serve(settings: WorkerSettings, folder: Path, say: Say) -> None:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    ending = asyncio.Event()

    def end() -> None:
        if not ending.is_set():
            _end_in_time(say)
        ending.set()

    for number in ENDS:
        loop.add_signal_handler(number, end)
    unblock_signals()
    orphaned = asyncio.create_task(_orphaned(settings.supervisor, end))

    def on_change() -> None:
        loop.call_soon_threadsafe(changed.set)

    told = _once(say)
    station = Station(settings.device, settings.key, folder, on_change)
    become(station)
    try:
        while not ending.is_set():
            changed.clear()
            await _joined(settings, station, folder, changed, ending, told)
    finally:
        orphaned.cancel()
        station.close()
        await _tasks_ended()


def _end_in_time(say: Say) -> None:
    """End this process, without closing anything, if it still runs after `CLOSING_SECONDS`."""

    def tell() -> None:
        with suppress(OSError, ValueError):  # nobody may read it any more
            say(f"the worker did not close within {CLOSING_SECONDS:g} s; it ends without")

    def end() -> None:
        telling = threading.Thread(target=tell, daemon=True)  # it waits for ever for a reader of a full pipe
        telling.start()
        telling.join(1.0)
        os._exit(0)

    timer = threading.Timer(CLOSING_SECONDS, end)
    timer.daemon = True
    timer.start()


async def _tasks_ended() -> None:
    """Cancel the tasks that Dask has left. `asyncio.run` does so once, and then waits for ever for one that waits for a worker whose closing was cancelled."""
    for _ in range(3):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)


def _once(say: Say) -> Say:
    """Print each reason for not joining only once until the worker has joined: it tries every few seconds, for weeks if need be."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if not text.endswith(AGAIN):
            told.clear()
        if text not in told:
            told.add(text)
            say(text)

    return tell


async def _orphaned(supervisor: int, end: Callable[[], None]) -> None:
    """End if the process that started this one is gone, for whatever reason."""
    while os.getppid() == supervisor:
        await asyncio.sleep(AGAIN_SECONDS)
    end()


async def _joined(settings: WorkerSettings, station: Station, folder: Path, changed: asyncio.Event, ending: asyncio.Event, say: Say) -> None:
    """Join the scheduler, and stay until the device's health changes, the scheduler is gone, or this process is told to end."""
    from distributed import Worker

    suspended = station.health.suspended
    options: dict[str, Any] = {"security": security(settings.place)} if settings.place.certificates is not None else {"host": loopback_of(settings.place.host)}
    try:
        await reached(settings.place, "worker", REACH_SECONDS)
    except DeviceError as error:
        say(f"{error}{AGAIN}")
        await _pause(ending)
        return
    worker = Worker(
        settings.place.url, nthreads=2, resources={f"{SUSPENDED}{settings.key}" if suspended else settings.key: 1}, dashboard=False,
        dashboard_address="127.0.0.1:0", memory_limit=0, local_directory=str(folder), death_timeout=JOIN_SECONDS, extensions={}, **options,
    )  # fmt: skip
    try:
        await asyncio.wait_for(_started(worker), JOIN_SECONDS)
        wrong = scheduler_difference(await asyncio.wait_for(worker.scheduler.versions(), REACH_SECONDS))
    except (OSError, TimeoutError) as error:
        say(f"no scheduler answers at {settings.place.url} ({type(error).__name__}){AGAIN}")
        await _left(worker.close())
        await _pause(ending)
        return
    if wrong:
        await _left(worker.close())
        raise DeviceError(f"asked for a worker of the farm at {settings.place.url}, whose scheduler has {wrong}")
    say(f"{settings.device} is suspended: {suspended}" if suspended else f"{settings.device} serves {settings.key} at {settings.place.url}")
    waits = [asyncio.create_task(one) for one in (worker.finished(), changed.wait(), ending.wait())]
    probing = asyncio.create_task(_probing(station)) if suspended else None
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in (*waits, *([probing] if probing else [])):
        one.cancel()
    if changed.is_set():
        await asyncio.sleep(ANSWER_SECONDS)  # so that the client of the last job learns why the device is suspended
    await _left(worker.close_gracefully() if not ending.is_set() else worker.close(executor_wait=False))


async def _left(leaving: Awaitable[object]) -> None:
    with suppress(Exception):
        await asyncio.wait_for(leaving, LEAVE_SECONDS)


async def _pause(ending: asyncio.Event) -> None:
    """Wait before the next attempt to join, but not if this process is told to end."""
    with suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), AGAIN_SECONDS)


async def _started(worker: Any) -> None:
    await worker


async def _probing(station: Station) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        probed = asyncio.Event()
        # the device may hang, so this is a daemon thread: the process can end without it
        threading.Thread(target=_probed, args=(station, loop, probed), daemon=True).start()
        await probed.wait()


def _probed(station: Station, loop: asyncio.AbstractEventLoop, probed: asyncio.Event) -> None:
    try:
        station.probe()
    finally:
        with suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(probed.set)
