"""Jobs for several devices: each gets one at a time, and the next free one gets the next job."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from ansor.errors import DeviceError
from ansor.measure.device import Device, Job, Observation
from ansor.measure.failure import Failure

LOST = ("link_lost", "reset")
"""Kinds of failures that are the device's, or the way to it: the job is tried once more, on the next free one."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a device said of a job, and the seconds that took."""

    outcome: Observation | Failure
    seconds: float


class DeviceQueue:
    """Hands jobs to devices. A single device runs its jobs in the caller's thread, when their results are asked for."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)
        self._free: queue.SimpleQueue[Device] = queue.SimpleQueue()
        for device in self._devices:
            self._free.put(device)
        self._threads = ThreadPoolExecutor(len(devices), thread_name_prefix="ansor-device") if len(devices) > 1 else None
        self._running: list[Future[Ran]] = []

    @property
    def ahead(self) -> int:
        """Jobs that are worth handing out before a result is asked for."""
        return 2 * len(self._devices) if self._threads is not None else 0

    def submit(self, job: Job) -> Future[Ran]:
        """The job's result, to come."""
        if self._threads is None:
            return _Done(self._run(job))
        self._running = [one for one in self._running if not one.done()]
        self._running.append(self._threads.submit(self._run, job))
        return self._running[-1]

    def stop(self) -> None:
        """End what runs, and forget what waits."""
        waiting = [one for one in self._running if not one.cancel()]
        if any(not one.done() for one in waiting):
            for device in self._devices:
                device.close()
        wait(waiting)
        self._running = []

    def close(self) -> None:
        """End everything, and let go of the devices."""
        self.stop()
        if self._threads is not None:
            self._threads.shutdown()
        for device in self._devices:
            device.close()

    def _run(self, job: Job) -> Ran:
        started = time.monotonic()
        outcome = self._once(job)
        if isinstance(outcome, Failure) and outcome.kind in LOST:
            outcome = self._once(job)
        return Ran(outcome, time.monotonic() - started)

    def _once(self, job: Job) -> Observation | Failure:
        device = self._free.get()
        try:
            outcome = device.run(job)
        finally:
            self._free.put(device)
        if isinstance(outcome, Observation) and (not outcome.costs or not all(0 < cost < float("inf") for cost in outcome.costs)):
            raise DeviceError(f"device {device.name} gave the costs {outcome.costs}; it must give at least one, each above 0: mend the device")
        if isinstance(outcome, Observation) and outcome.unit != device.unit:
            raise DeviceError(f"device {device.name}, which counts {device.unit}, gave costs in {outcome.unit}: mend the device")
        return outcome


class _Done(Future[Ran]):
    """A result that is there."""

    def __init__(self, ran: Ran) -> None:
        super().__init__()
        self.set_result(ran)
