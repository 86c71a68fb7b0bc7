"""A worker of a farm: a process with one device that joins a scheduler. While its device is suspended, it joins under a key that no job can request."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansor.errors import DeviceError
from ansor.farm.address import SUSPENDED, SchedulerAddress, loopback_of, security
from ansor.farm.reach import reached
from ansor.farm.scheduler import configure
from ansor.farm.station import Station, become
from ansor.farm.versions import scheduler_difference
from ansor.measure.work_directory import WorkDirectory

PROBE_SECONDS = 10.0
JOIN_SECONDS = 30.0
REACH_SECONDS = 5.0
AGAIN_SECONDS = 2.0
ANSWER_SECONDS = 0.5
CLOSING_SECONDS = 20.0
"""How long a worker that was told to end may take to close its device and its connection, either of which may hang. Then it ends without."""

ENDING_SECONDS = 30.0
"""How long the process of a worker that was told to end may take. Then it is killed."""

AGAIN = "; trying again"
"""The end of messages that say why a worker could not join."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker serves: the farm, the key and the text of its device."""

    place: SchedulerAddress
    key: str
    device: str


def serve(settings: WorkerSettings, say: Say) -> None:
    """Run a worker until Ctrl-C or SIGTERM."""
    from ansor.farm import listener

    configure()
    listener.install()
    with WorkDirectory() as work, suppress(asyncio.CancelledError):
        asyncio.run(_serve(settings, work.path, say))


def supervise(command: Sequence[str], say: Say) -> int:
    """Run a worker in a separate process, and restart it if it ends by itself. Returns its exit status if it was told to end, or cannot start."""
    while True:
        started = time.monotonic()
        process = subprocess.Popen([sys.executable, *command])
        status = _watched(process)
        if status in (0, 1, 2, 130, -signal.SIGINT, -signal.SIGTERM):
            return max(status, 0)
        say(f"the worker ended with status {status}; restarting it")
        time.sleep(max(0.0, AGAIN_SECONDS - (time.monotonic() - started)))


def _watched(process: subprocess.Popen[bytes]) -> int:
    """Wait for the process, and return its exit status. SIGTERM and Ctrl-C end it; if this process is killed, it ends by itself (`_orphaned`)."""
    told = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return _ended(process) and 130
    finally:
        signal.signal(signal.SIGTERM, told)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Tell a process to end, and return its exit status. It is killed if it does not end in time, or if this process is told again to end."""
    try:
        process.terminate()
        return process.wait(ENDING_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()


async def _serve(settings: WorkerSettings, folder: Path, say: Say) -> None:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    ending = asyncio.Event()

    def end() -> None:
        if not ending.is_set():
            _end_in_time(say)
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    orphaned = asyncio.create_task(_orphaned(end))

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


def _end_in_time(say: Say) -> None:
    """End this process, without closing anything, if it still runs after `CLOSING_SECONDS`."""

    def end() -> None:
        with suppress(OSError):  # nobody may read it any more
            say(f"the worker did not close within {CLOSING_SECONDS:g} s; it ends without")
        os._exit(0)

    timer = threading.Timer(CLOSING_SECONDS, end)
    timer.daemon = True
    timer.start()


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


async def _orphaned(end: Callable[[], None]) -> None:
    """End if the process that started this one is gone, for whatever reason."""
    parent = os.getppid()
    while os.getppid() == parent:
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
        await asyncio.sleep(AGAIN_SECONDS)
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
        with suppress(Exception):
            await asyncio.wait_for(worker.close(), 5)
        await asyncio.sleep(AGAIN_SECONDS)
        return
    if wrong:
        await worker.close()
        raise DeviceError(f"asked for a worker of the farm at {settings.place.url}, whose scheduler has {wrong}")
    say(f"{settings.device} is suspended: {suspended}" if suspended else f"{settings.device} serves {settings.key} at {settings.place.url}")
    waits = [asyncio.create_task(one) for one in (worker.finished(), changed.wait(), ending.wait())]
    probing = asyncio.create_task(_probing(station)) if suspended else None
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in (*waits, *([probing] if probing else [])):
        one.cancel()
    if changed.is_set():
        await asyncio.sleep(ANSWER_SECONDS)  # so that the client of the last job learns why the device is suspended
    with suppress(Exception):
        await asyncio.wait_for(worker.close_gracefully() if not ending.is_set() else worker.close(executor_wait=False), 10)


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
