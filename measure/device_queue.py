"""Distributes jobs over several devices. Each device runs one job at a time; the first free device gets the next job."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ansor.errors import AnsorError, DeviceError
from ansor.measure.device import Device, Job, Observation
from ansor.measure.failure import LINK, Failure
from ansor.measure.turns import Say
from ansor.support.notices import warn
from ansor.support.text import counted

MOST_LOST = 6
"""After so many lost runs in a row (failures of the kinds LINK), a device gets no more jobs. A lost job is retried once, on another device if there is one,
so a single device reaches this after three jobs."""

_STOPPED = Failure("queue", "the run was stopped before a device was free")


@dataclass(frozen=True, slots=True)
class JobResult:
    """A device's answer to a job, and the seconds it took."""

    outcome: Observation | Failure
    seconds: float


@runtime_checkable
class ProxyDevice(Protocol):
    """A device that gives access to others."""

    def lines(self) -> Sequence[str]:
        """The state of those devices, one line each; empty if another device of the queue reports them."""


class DeviceQueue:
    """Hands jobs to devices. threaded: jobs run in threads; otherwise, a single device runs them in the caller's thread, as they are submitted.

    A device that raises DeviceError, or loses `MOST_LOST` runs in a row, gets no more jobs: `say` gets a message, and the other devices continue. If it was the
    last one, the job raises the DeviceError.
    """

    def __init__(self, devices: Sequence[Device], say: Say = warn, *, threaded: bool = False) -> None:
        self._devices = tuple(devices)
        self._usable, self._free, self._lost, self._ran = list(devices), list(devices), [0] * len(devices), [0] * len(devices)
        self._changed, self._say, self._stopping = threading.Condition(), say, False
        self._threads = ThreadPoolExecutor(len(devices), thread_name_prefix="ansor-device") if threaded or len(devices) > 1 else None
        self._running: list[Future[JobResult]] = []
        self._reasons: set[str] = set()  # why devices were left out

    @property
    def ahead(self) -> int:
        """How many jobs to submit before waiting for a result."""
        return 2 * len(self._devices) if self._threads is not None else 0

    def lines(self) -> Sequence[str]:
        """The state of the devices, one line each; proxies (`farm://`) report the devices behind them."""
        found: list[str] = []
        for device, ran in zip(self._devices, self._ran, strict=True):
            found += device.lines() if isinstance(device, ProxyDevice) else [f"{device.name}: {self._state(device)}, {counted(ran, 'job')} done"]
        return found

    def _state(self, device: Device) -> str:
        with self._changed:
            if all(one is not device for one in self._usable):
                return "left out"
            return "free" if any(one is device for one in self._free) else "busy"

    def submit(self, job: Job) -> Future[JobResult]:
        """The future of the job's result."""
        if self._threads is None:
            return _ResolvedFuture(self._run(job))
        self._running = [one for one in self._running if not one.done()]
        self._running.append(self._threads.submit(self._run, job))
        return self._running[-1]

    def stop(self) -> None:
        """Stop running jobs and drop waiting ones."""
        self._stopping = True
        waiting = [one for one in self._running if not one.cancel()]
        try:
            if any(not one.done() for one in waiting):
                self._close_devices()
        finally:
            wait(waiting)
            self._running, self._stopping = [], False

    def close(self) -> None:
        """Stop everything and close all devices, even if closing one raises; the error is raised afterwards."""
        try:
            self.stop()
        finally:
            if self._threads is not None:
                self._threads.shutdown()
            self._close_devices()

    def _close_devices(self) -> None:
        with ExitStack() as closing:
            for device in reversed(self._devices):
                closing.callback(device.close)

    def _run(self, job: Job) -> JobResult:
        started = time.monotonic()
        outcome, device = self._once(job, None)
        if isinstance(outcome, Failure) and outcome.kind in LINK and not self._stopping:
            outcome, _ = self._once(job, device)
        return JobResult(outcome, time.monotonic() - started)

    def _once(self, job: Job, other_than: Device | None) -> tuple[Observation | Failure, Device]:
        """Run a job on the next free device, but not on `other_than` if there is another. Returns the result and the device."""
        while True:
            device = self._take(other_than)
            try:
                if self._stopping:
                    return _STOPPED, device
                outcome = _outcome(device, job)
                self._count(device, outcome)
                return outcome, device
            except _UnusableDevice as error:
                if not self._stopping:
                    self._leave_out(device, error)
            finally:
                self._give_back(device)

    def _take(self, other_than: Device | None) -> Device:
        with self._changed:
            while True:
                wanted = [one for one in self._usable if one is not other_than] or self._usable
                free = next((one for one in self._free if any(one is usable for usable in wanted)), None)
                if free is not None:
                    self._free = [one for one in self._free if one is not free]
                    return free
                self._changed.wait()

    def _give_back(self, device: Device) -> None:
        with self._changed:
            self._free.append(device)
            self._changed.notify_all()

    def _count(self, device: Device, outcome: Observation | Failure) -> None:
        """Raises _UnusableDevice for a device that lost too many runs in a row."""
        at = next(k for k, one in enumerate(self._devices) if one is device)
        lost = isinstance(outcome, Failure) and outcome.kind in LINK and not self._stopping
        self._ran[at] += not lost
        self._lost[at] = self._lost[at] + 1 if lost else 0
        if self._lost[at] >= MOST_LOST:
            self._lost[at] = 0
            raise _UnusableDevice(f"device {device.name} lost {MOST_LOST} runs in a row, the last one with {outcome}; check whether it is on and reachable")

    def _leave_out(self, device: Device, error: _UnusableDevice) -> None:
        """Continue without a device. The last one stays, so that a later job may retry it; its error is raised."""
        with self._changed:
            others = [one for one in self._usable if one is not device]
            if not others:
                raise DeviceError(str(error)) from error
            self._usable = others
            self._changed.notify_all()
            told = str(error) in self._reasons
            self._reasons.add(str(error))
        if told:  # probably from the same farm: one message is enough
            return
        names = ", ".join(one.name for one in others)
        self._say(f"device {device.name} is left out, {names} {'continues' if len(others) == 1 else 'continue'}: {error}")


class _UnusableDevice(DeviceError):
    """A device can no longer be used."""


def _outcome(device: Device, job: Job) -> Observation | Failure:
    """A device's result of a job. Raises _UnusableDevice if it cannot be used, DeviceError if it breaks the protocol."""
    try:
        outcome = device.run(job)
    except DeviceError as error:
        raise _UnusableDevice(str(error)) from error
    except AnsorError:
        raise
    except Exception as error:
        raise DeviceError(f"device {device.name} raised {type(error).__name__}: {error}; it must return an observation or a failure: fix the device") from error
    _check(device, outcome)
    return outcome


def _check(device: Device, outcome: object) -> None:
    """Raises DeviceError for an outcome that a device may not return."""
    if isinstance(outcome, Failure):
        return
    if not isinstance(outcome, Observation):
        raise DeviceError(f"device {device.name} gave {outcome!r:.200}, which is neither an Observation nor a Failure: fix the device")
    if not _are_costs(outcome.costs):
        raise DeviceError(f"device {device.name} gave the costs {outcome.costs!r:.200}; it must return a tuple of at least one, each above 0: fix the device")
    if outcome.unit != device.unit:
        raise DeviceError(f"device {device.name}, which counts {device.unit}, gave costs in {outcome.unit}: fix the device")


def _are_costs(costs: object) -> bool:
    """Whether these are valid costs: comparable, and fit for a record."""
    return isinstance(costs, tuple) and bool(costs) and all(isinstance(cost, int | float) and 0 < cost < float("inf") for cost in costs)


class _ResolvedFuture(Future[JobResult]):
    """A future that is already done."""

    def __init__(self, ran: JobResult) -> None:
        super().__init__()
        self.set_result(ran)
