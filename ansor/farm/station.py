"""The station of a farm's worker: runs jobs on its one device, keeps the files that it receives, and watches the device's health.

Clients call `run_job`, `judge`, `describe` and `status` by name; Dask calls no other function of ours here.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from ansor.codegen.toolchain import processor_name
from ansor.errors import AnsorError, DeviceError
from ansor.farm.codec import digest_of, digests_of, outcome_data, unpack_job
from ansor.farm.health import OTHERS, USUAL, Costs, Health
from ansor.farm.run_thread import RunThread
from ansor.farm.versions import versions
from ansor.farm.watches import Watches
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import open_device
from ansor.measure.failure import Failure
from ansor.measure.machine_identity import processor_identity
from ansor.measure.machine_trouble import KIND as MACHINE
from ansor.support.text import clip
from ansor.targets.base import LOCAL, parse_target

FILES_KEPT = 512
JOBS_OF_A_DEVICE = 4096  # then it is reopened: devices keep some state for every task that they have seen
PROBES = 3  # runs of a canary if the first one is slow; the fastest counts
MINUTE = 60.0
PATIENCE_SECONDS = 900.0
"""The limit on one run, whatever its own limits are. A device that has not answered by then is taken to hang, and is suspended."""

MOST_RUNS = 4
"""The most runs in one call: a job and its canaries. A call that takes longer than this many runs hangs elsewhere: the process ends, and is restarted."""

MOST_LEFT = 16
"""The most hanging runs that a process may have left behind. If it has more, it ends and is restarted while its device is suspended."""

GAVE_UP = 75  # the process's exit status in both cases


@dataclass(frozen=True, slots=True)
class Counts:
    """What a station has done. ended: when the jobs of the last minute ended, in seconds of `time.monotonic`."""

    jobs: int = 0
    failures: int = 0
    ended: tuple[float, ...] = ()
    last_failure: str = ""

    def in_the_last_minute(self, now: float) -> tuple[float, ...]:
        """The part of `ended` that is in the minute before `now`."""
        return tuple(one for one in self.ended if now - one < MINUTE)


class Station:
    """One device and its state. folder: for its files, private to this process. changed: called when the device is suspended, and when it is well again."""

    def __init__(self, device: str, key: str, folder: Path, changed: Callable[[], None] = lambda: None) -> None:
        self.device_text, self.key = device, key
        self._folder, self._changed = folder, changed
        self._lock, self._thread = threading.Lock(), RunThread()
        self._opened: tuple[str, Device] | None = None
        self._health, self._counts = Health(), Counts()
        self._files: OrderedDict[str, Path] = OrderedDict()
        self._watches = Watches()  # `_health` has the costs of the canary in use
        self._identity = uuid.uuid4().hex  # processes on different machines may have the same number
        self._target = ""  # of the last job or canary; while the device is suspended, of the one that suspended it

    @property
    def health(self) -> Health:
        """The device's health now."""
        return self._health

    def describe(self, target: str) -> dict[str, Any]:
        """What the costs measured here depend on. Opens the device."""
        with self._lock, _Watchdog():
            device = self._device(target)
            return self.about() | self._kind(device)

    def status(self) -> dict[str, Any]:
        """The state for display; never waits for a job."""
        counts = self._counts
        return self.about() | {
            "jobs": counts.jobs, "failures": counts.failures, "last_minute": len(counts.in_the_last_minute(time.monotonic())),
            "last_failure": counts.last_failure, "suspended": self._health.suspended, "canary": self._health.costs.usual,
        }  # fmt: skip

    def run(self, target: str, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any]) -> dict[str, Any]:
        """Run a job. canary: its `text`, and in `every` after how many jobs it runs; empty for none.

        Returns the outcome with what it depends on; {"missing": digests} if files have to be sent, {"refused": why} if the device is suspended.
        """
        with self._lock, _Watchdog():
            self._keep(files)
            wanted = [*digests_of(text), *(digests_of(canary["text"]) if canary else ())]
            missing = [digest for digest in dict.fromkeys(wanted) if not self._has(digest)]
            if missing:
                return {"missing": missing}
            if self._health.suspended:
                return self._refusal()
            return self._run(target, text, canary)

    def probe(self) -> None:
        """Check whether a suspended device is well again: run its canary or, if there is none, reopen the device."""
        with self._lock, _Watchdog():
            if not self._health.suspended or not self._target:
                return
            if self._thread.left > MOST_LEFT:
                os._exit(GAVE_UP)
            try:
                self._health = self._probed()
            except (AnsorError, OSError) as error:
                self._health = self._health.suspend(str(error))
            well = not self._health.suspended
        if well:
            self._changed()

    def judge(self, target: str, canary: str, files: Mapping[str, bytes], others: float) -> dict[str, Any]:
        """Run the canary now, which ends a shift. others: its usual cost on the other devices of the key, 0 for none. It replaces the usual cost here, which is
        too high for a device that was slow from its start. Returns the usual cost here, or {"refused": why} like `run`."""
        with self._lock, _Watchdog():
            self._keep(files)
            if self._health.suspended:
                return self._refusal()
            self._target = target
            try:
                device = self._device(target)
                self._watch_by(target, canary)
                if others:
                    self._health = replace(self._health, costs=Costs(lowest=others))
                self._watched(device, OTHERS if others else USUAL)
            except DeviceError as error:
                self._suspend(str(error))
            if self._health.suspended:
                self._changed()
                return self._refusal()
            return self.about() | {"canary": self._health.costs.usual, "judged": self._watches.judged}

    def close(self) -> None:
        """Release the device."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def _run(self, target: str, text: str, canary: Mapping[str, Any]) -> dict[str, Any]:
        job = unpack_job(text, self._file)  # an unreadable job is not the device's fault
        self._target = target
        outcome: Observation | Failure | None = None
        kind, shift = dict[str, str](), 0
        try:
            if self._counts.jobs and self._counts.jobs % JOBS_OF_A_DEVICE == 0:
                self.close()
            device = self._device(target)
            self._watch(device, canary)
            kind = self._kind(device)
            if not self._health.suspended:
                shift = self._watches.open_shift()
                outcome = self._answer(device, job)
                self._watches.note_job()
                self._watch(device, canary)
        except DeviceError as error:
            self._suspend(str(error))
            outcome = None
        self._count(outcome)
        if self._health.suspended:
            self._watches.drop_shifts()
            self._changed()
        if outcome is None or (self._health.suspended and _is_by_device(outcome)):
            return self._refusal()
        said = {"outcome": outcome_data(outcome), "canary": self._health.costs.usual, "shift": shift, "judged": self._watches.judged}
        return self.about() | kind | said

    def _refusal(self) -> dict[str, Any]:
        return self.about() | {"refused": self._health.suspended, "judged": self._watches.judged}

    def _suspend(self, why: str) -> None:
        self._health = self._health.suspend(why)
        self._watches.drop_shifts()

    def _answer(self, device: Device, job: Job) -> Observation | Failure:
        """The device's answer. If there is none, the device is suspended and the job is lost: it might make another device hang, too."""
        try:
            outcome = self._thread.run(device, job, PATIENCE_SECONDS)
        except TimeoutError:
            outcome = Failure("link_lost", f"{self.device_text} did not answer within {PATIENCE_SECONDS:g} s")
            self._opened = None
            self._health = self._health.suspend(outcome.text)
        else:
            self._health = self._health.after_run(outcome)
        return outcome

    def _watch(self, device: Device, canary: Mapping[str, Any]) -> None:
        """Run the canary if it is due: before the first job, and after every `every` jobs."""
        if not canary or self._health.suspended:
            return
        self._watch_by(self._target, canary["text"])
        if not self._health.costs.usual or self._watches.current.since >= int(canary["every"]):
            self._watched(device)

    def _watch_by(self, target: str, canary: str) -> None:
        """Watch the device with this canary from now on, starting from its earlier costs: those of other canaries do not apply to it."""
        name = (target, digest_of(canary.encode()))
        if name != self._watches.name:
            costs = self._watches.use(name, unpack_job(canary, self._file), self._health.costs)
            self._health = replace(self._health, costs=costs)

    def _watched(self, device: Device, where: str = USUAL) -> None:
        """Run the canary and end its shift. The shift counts unless the device is suspended now, or there was no usual cost to compare with."""
        known = self._health.costs.usual > 0
        self._watches.note_canary()
        cost = self._canary_cost(device)
        for _ in range(PROBES - 1):
            if isinstance(cost, Failure) or not self._health.is_slow(cost):
                break
            again = self._canary_cost(device)
            cost = again if isinstance(again, Failure) else min(cost, again)
        self._health = self._health.after_canary(cost, where)
        if self._health.suspended:
            self._watches.drop_shifts()
        else:
            self._watches.end_shift(counts=known)

    def _probed(self) -> Health:
        """The health of a suspended device now. Raises AnsorError or OSError if it cannot be opened."""
        canary = self._watches.current.job
        if canary is not None and canary.artifact.path.exists():  # newer files may have replaced it
            return self._health.after_canary(self._canary_cost(self._device(self._watches.name[0])))
        self.close()  # what it is connected to may be gone
        self._kind(self._device(self._target))
        return replace(self._health, suspended="")

    def _canary_cost(self, device: Device) -> float | Failure:
        """The cost of the canary in use, or its failure."""
        canary = self._watches.current.job
        assert canary is not None
        try:
            outcome = self._thread.run(device, canary, PATIENCE_SECONDS)
        except TimeoutError:
            self._opened = None
            return Failure("timeout", f"no answer within {PATIENCE_SECONDS:g} s")
        return outcome if isinstance(outcome, Failure) else median(outcome.costs)

    def _device(self, target: str) -> Device:
        """The device, opened for a target's programs; reopened if that changes. Raises DeviceError if it cannot be opened, TargetError for a bad text."""
        if self._opened is not None and self._opened[0] == target:
            return self._opened[1]
        parsed = parse_target(target)
        try:
            self.close()
            device = open_device(self.device_text, parsed)
        except DeviceError:
            raise
        except (AnsorError, OSError) as error:  # the machine lacks something, so this device cannot be used
            raise DeviceError(str(error)) from error
        self._opened = (target, device)
        return device

    def _kind(self, device: Device) -> dict[str, str]:
        """What a device's costs depend on, and the device and its machine for display. The processor matters if the machine itself is the device."""
        here = device.model == LOCAL
        name = f"{self.device_text} on {platform.node()}{f' ({processor_name()})' if here else ''}"
        return {
            "model": device.model, "processor": processor_identity() if here else "", "unit": device.unit.to_text(), "form": device.form,
            "measured_by": "".join(letter if letter.isprintable() else " " for letter in name),
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        """Which station answers, and its versions."""
        return versions() | {"device": self.device_text, "key": self.key, "process": os.getpid(), "identity": self._identity}

    def _count(self, outcome: Observation | Failure | None) -> None:
        counts = self._counts
        failed = not isinstance(outcome, Observation)
        said = counts.last_failure if not failed else clip(str(outcome or self._health.suspended), 300)
        now = time.monotonic()
        self._counts = Counts(counts.jobs + 1, counts.failures + failed, (*counts.in_the_last_minute(now), now), said)

    def _keep(self, files: Mapping[str, bytes]) -> None:
        for digest, content in files.items():
            if digest_of(content) != digest:
                raise DeviceError(f"received a file that does not match its digest ({digest[:16]}): it was changed in transit")
            path = self._folder / digest
            path.write_bytes(content)
            path.chmod(0o700)  # programs have to be executable
            self._files[digest] = path
        while len(self._files) > FILES_KEPT:
            self._files.popitem(last=False)[1].unlink(missing_ok=True)

    def _has(self, digest: str) -> bool:
        known = digest in self._files
        if known:
            self._files.move_to_end(digest)
        return known

    def _file(self, digest: str) -> Path:
        return self._files[digest]


def _is_by_device(outcome: Observation | Failure) -> bool:
    """Whether an outcome depends on the state of the device: on its speed, or on what its machine lacks."""
    return isinstance(outcome, Observation) or outcome.kind in ("timeout", MACHINE)


@dataclass(slots=True)
class _Watchdog:
    """Ends the process if the block takes too long."""

    timer: threading.Timer = field(init=False)

    def __enter__(self) -> None:
        self.timer = threading.Timer(MOST_RUNS * PATIENCE_SECONDS, os._exit, (GAVE_UP,))
        self.timer.daemon = True
        self.timer.start()

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()


_station: list[Station] = []
"""The station of this process, in a global because Dask calls functions by name."""


def become(station: Station) -> None:
    """Make a station this process's station."""
    _station[:] = [station]


def run_job(target: str, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any]) -> dict[str, Any]:
    """See `Station.run`. Errors of ansor are returned as a sentence."""
    from distributed import get_worker

    worker = {"worker": get_worker().address}
    try:
        return _mine().run(target, text, files, canary) | worker
    except (AnsorError, OSError) as error:
        return _error(error) | worker


def judge(target: str, canary: str, files: Mapping[str, bytes], others: float) -> dict[str, Any]:
    """See `Station.judge`."""
    try:
        return _mine().judge(target, canary, files, others)
    except (AnsorError, OSError) as error:
        return _error(error)


def describe(target: str) -> dict[str, Any]:
    """See `Station.describe`."""
    try:
        return _mine().describe(target)
    except (AnsorError, OSError) as error:
        return _error(error)


def status() -> dict[str, Any]:
    """See `Station.status`."""
    return _mine().status()


def _error(error: Exception) -> dict[str, Any]:
    return (_station[0].about() if _station else versions()) | {"error": str(error)}


def _mine() -> Station:
    if not _station:
        raise DeviceError("this worker of Dask was not started by `ansor farm worker`: it has no device")
    return _station[0]
