"""Dask's scheduler with a thousand real workers in a few processes. Jobs only wait. See `farm.py`."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from common import console

from ansor.farm.scheduler import configure

PROCESSES = 2
JOB_SECONDS = 1.0


def thousand(devices: int, jobs: int) -> None:
    """Start the workers, submit jobs at the rate of many clients, and print the scheduler's load."""
    here = str(Path(__file__).resolve())
    scheduler = subprocess.Popen([sys.executable, here, "scheduler"], stdout=subprocess.PIPE, text=True)
    assert scheduler.stdout is not None
    address = scheduler.stdout.readline().strip()
    command = [sys.executable, here, "workers", address, str(devices // PROCESSES)]
    crowds = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    try:
        for one in crowds:
            assert one.stdout is not None and one.stdout.readline().strip() == "ready"
        _measure(address, devices, jobs, scheduler.pid)
    finally:
        for one in (*crowds, scheduler):
            one.kill()
            one.wait()


def _measure(address: str, devices: int, jobs: int, scheduler: int) -> None:
    from distributed import Client

    configure()
    with Client(address, set_as_default=False) as client:
        before, rested = _processor_seconds(scheduler), time.monotonic()
        time.sleep(10)
        idle = (_processor_seconds(scheduler) - before) / (time.monotonic() - rested)
        before, started = _processor_seconds(scheduler), time.monotonic()
        futures = [client.submit(_wait, JOB_SECONDS, number, b"x" * 50_000, pure=False, resources={"board": 1}) for number in range(jobs)]
        done = sum(client.gather(futures))
        seconds, used = time.monotonic() - started, _processor_seconds(scheduler) - before
    assert done == jobs, done
    memory = int(Path(f"/proc/{scheduler}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    console().print(f"{devices} devices: while no job runs, the scheduler uses {idle:.2f} of a processor and {memory:.0f} MB")
    console().print(f"{jobs} jobs of {JOB_SECONDS:g} s and 50 kB in {seconds:.1f} s: {jobs / seconds:.0f} per second")
    console().print(f"{1e3 * used / jobs:.2f} ms of the scheduler's processor time per job")


def _wait(seconds: float, number: int, content: bytes) -> int:
    del number, content
    time.sleep(seconds)
    return 1


def _processor_seconds(process: int) -> float:
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def _scheduler() -> None:
    from distributed import Scheduler

    configure()
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()


async def _workers(address: str, count: int) -> None:
    from distributed import Worker

    configure()
    workers = [Worker(address, nthreads=1, resources={"board": 1}, dashboard=False, dashboard_address="127.0.0.1:0", memory_limit=0) for _ in range(count)]
    for first in range(0, count, 50):
        await asyncio.gather(*(_started(one) for one in workers[first : first + 50]))
    print("ready", flush=True)
    await asyncio.gather(*(one.finished() for one in workers))


async def _started(worker: object) -> None:
    await worker  # type: ignore[misc]


if __name__ == "__main__":
    asyncio.run(_scheduler() if sys.argv[1] == "scheduler" else _workers(sys.argv[2], int(sys.argv[3])))
