"""Runs the jobs of a farm's worker: it has one device, keeps the files that it receives, and watches the device's health. Clients call `run_job`,

`judge` and `describe` by name; they are the only functions of ours that Dask calls here, besides `status`.
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
from ansor.farm.health import Health
from ansor.farm.run_thread import RunThread
from ansor.farm.shifts import KEPT
from ansor.farm.versions import versions
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import open_device
from ansor.measure.failure import Failure
from ansor.measure.machine_identity import processor_identity
from ansor.support.text import clip
from ansor.targets.base import LOCAL, parse_target

FILES_KEPT = 512
PROBES = 3  # canaries of which the fastest counts, where the first one is slow
MINUTE = 60.0
PATIENCE_SECONDS = 900.0
"""Of one run, whatever its own limits are. A device that has not answered by then never will: it is suspended."""

MOST_RUNS = 4
"""Of one call: a job and its canaries. A call that takes longer than that many runs hangs elsewhere: the process ends, and is started again."""

GAVE_UP = 75  # the process's status then


@dataclass(frozen=True, slots=True)
class Counts:
    """What a station has done. ended: when the jobs of the last minute ended, by `time.monotonic`."""

    jobs: int = 0
    failures: int = 0
    ended: tuple[float, ...] = ()
    last_failure: str = ""

    def in_the_last_minute(self, now: float) -> tuple[float, ...]:
        """Of `ended`, those that still are."""
        return tuple(one for one in self.ended if now - one < MINUTE)


class Station:
    """One device and what belongs to it. folder: for files, of this process alone. changed: called when the device is suspended, and when it is well again."""

    def __init__(self, device: str, key: str, folder: Path, changed: Callable[[], None] = lambda: None) -> None:
        self.device_text, self.key = device, key
        self._folder, self._changed = folder, changed
        self._lock, self._thread = threading.Lock(), RunThread()
        self._opened: tuple[str, Device] | None = None
        self._health, self._counts = Health(), Counts()
        self._files: OrderedDict[str, Path] = OrderedDict()
        self._watching: tuple[str, str] = ("", "")  # the target and the program of the canary whose costs `_health` has
        self._canaries: dict[tuple[str, str], Job] = {}  # by such a pair, as the next two
        self._since_canary: dict[tuple[str, str], int] = {}
        self._costs: dict[tuple[str, str], tuple[float, ...]] = {}
        self._identity = uuid.uuid4().hex  # processes of several machines may have one number
        self._shifts, self._open_shifts = 0, dict[tuple[str, str], int]()  # see ansor.farm.shifts: each canary has its own, numbered for the device
        self._judged = dict[int, bool]()  # whether the results of shifts that ended count
        self._target = ""  # of the last job: where the device is suspended, of what suspended it

    @property
    def health(self) -> Health:
        """As it is now."""
        return self._health

    def describe(self, target: str) -> dict[str, Any]:
        """What costs from here depend on. Opens the device."""
        with self._lock:
            device = self._device(target)
            return self.about() | self._kind(device)

    def status(self) -> dict[str, Any]:
        """For people; never waits for a job."""
        counts = self._counts
        return self.about() | {
            "jobs": counts.jobs, "failures": counts.failures, "last_minute": len(counts.in_the_last_minute(time.monotonic())),
            "last_failure": counts.last_failure, "quarantined": self._health.quarantined, "canary": self._health.usual,
        }  # fmt: skip

    def run(self, target: str, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any]) -> dict[str, Any]:
        """Run a job. canary: its `text`, and `every`: after how many jobs it runs; nothing for none.

        Gives its outcome with what it depends on; {"missing": digests} where files have to come along, {"refused": why} where the device is suspended.
        """
        with self._lock, _patience():
            self._keep(files)
            wanted = [*digests_of(text), *(digests_of(canary["text"]) if canary else ())]
            missing = [digest for digest in dict.fromkeys(wanted) if not self._has(digest)]
            if missing:
                return {"missing": missing}
            if self._health.quarantined:
                return self._refusal()
            return self._run(target, text, canary)

    def probe(self) -> None:
        """Whether a device that was suspended is well again: by its canary, or by opening it anew where there is none."""
        with self._lock, _patience():
            if not self._health.quarantined or not self._target:
                return
            canary = self._canaries.get(self._watching)
            if canary is not None and not canary.artifact.path.exists():  # other files took its place
                canary = None
            try:
                device = self._device(self._target if canary is None else self._watching[0])
                cost = 1.0 if canary is None else self._canary_cost(device, canary)
            except (AnsorError, OSError):
                cost = None
            before = self._health
            self._health = before.after_canary(cost) if canary is not None or cost is None else replace(before, quarantined="")
            well = not self._health.quarantined
        if well:
            self._changed()

    def judge(self, target: str, canary: str, files: Mapping[str, bytes], others: float) -> dict[str, Any]:
        """Run the canary now, which ends a shift. others: what it usually costs on the others of the key, to be compared with that instead of what it usually
        cost here, which is wrong for a device that was slow from its start; 0 for none. Gives what it usually costs, or {"refused": why} as `run` does."""
        with self._lock, _patience():
            self._keep(files)
            if self._health.quarantined:
                return self._refusal()
            self._target = target
            try:
                device = self._device(target)
                self._watch_by(target, canary)
                if others:
                    self._health = replace(self._health, canaries=(others,))
                self._watched(device, "as on the others of its key" if others else "as usual")
            except DeviceError as error:
                self._health = self._health.put_aside(str(error))
                self._end_shift()
            if self._health.quarantined:
                self._changed()
            return self._refusal() if self._health.quarantined else self.about() | {"canary": self._health.usual, "judged": dict(self._judged)}

    def close(self) -> None:
        """Let go of the device."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def _run(self, target: str, text: str, canary: Mapping[str, Any]) -> dict[str, Any]:
        self._target = target
        outcome: Observation | Failure | None = None
        kind, shift = dict[str, str](), 0
        try:
            device = self._device(target)
            self._watch(device, canary)
            kind = self._kind(device)
            if not self._health.quarantined:
                shift = self._open_shift()
                outcome = self._answer(device, unpack_job(text, self._file))
                self._since_canary[self._watching] = self._since_canary.get(self._watching, 0) + 1
                self._watch(device, canary)
        except DeviceError as error:
            self._health, outcome = self._health.put_aside(str(error)), None
        self._count(outcome)
        if self._health.quarantined:
            self._end_shift()
            self._changed()
        if outcome is None or (self._health.quarantined and _by_time(outcome)):
            return self._refusal()
        said = {"outcome": outcome_data(outcome), "canary": self._health.usual, "shift": shift, "judged": dict(self._judged)}
        return self.about() | kind | said

    def _refusal(self) -> dict[str, Any]:
        return self.about() | {"refused": self._health.quarantined, "judged": dict(self._judged)}

    def _answer(self, device: Device, job: Job) -> Observation | Failure:
        """What the device says. One that says nothing is suspended, and its job lost: another might hang there, too."""
        try:
            outcome = self._thread.run(device, job, PATIENCE_SECONDS)
        except TimeoutError:
            outcome = Failure("link_lost", f"{self.device_text} did not answer within {PATIENCE_SECONDS:g} s")
            self._opened = None
            self._health = self._health.put_aside(outcome.text)
        else:
            self._health = self._health.after_run(outcome)
        return outcome

    def _watch(self, device: Device, canary: Mapping[str, Any]) -> None:
        """Run the canary if it is due: before the first job, and after every so many."""
        if not canary or self._health.quarantined:
            return
        self._watch_by(self._target, canary["text"])
        if not self._health.canaries or self._since_canary.get(self._watching, 0) >= int(canary["every"]):
            self._watched(device)

    def _watch_by(self, target: str, canary: str) -> None:
        """Watch the device by this canary from now on, with what it cost before. Costs of other programs say nothing of its."""
        watching = (target, digest_of(canary.encode()))
        if watching != self._watching:
            self._costs[self._watching] = self._health.canaries
            self._watching, self._health = watching, replace(self._health, canaries=self._costs.get(watching, ()))
        self._canaries[watching] = unpack_job(canary, self._file)

    def _watched(self, device: Device, where: str = "as usual") -> None:
        """Run the canary."""
        program, known = self._canaries[self._watching], bool(self._health.canaries)
        self._since_canary[self._watching] = 0
        cost = self._canary_cost(device, program)
        for _ in range(PROBES - 1):
            if cost is None or not self._health.is_slow(cost):
                break
            again = self._canary_cost(device, program)
            cost = None if again is None else min(cost, again)
        self._health = self._health.after_canary(cost, where)
        self._end_shift(known)

    def _open_shift(self) -> int:
        """That of a job that runs now."""
        if self._watching not in self._open_shifts:
            self._shifts += 1
            self._open_shifts[self._watching] = self._shifts
        return self._open_shifts[self._watching]

    def _end_shift(self, known: bool = True) -> None:
        """What ran since this canary ran last counts, unless what it usually costs was not known. Where the device is suspended now, no open shift counts."""
        well = not self._health.quarantined
        for watching in [self._watching] if well else list(self._open_shifts):
            if watching in self._open_shifts:
                self._judged[self._open_shifts.pop(watching)] = known and well
        while len(self._judged) > KEPT:
            self._judged.pop(next(iter(self._judged)))

    def _canary_cost(self, device: Device, canary: Job) -> float | None:
        try:
            outcome = self._thread.run(device, canary, PATIENCE_SECONDS)
        except TimeoutError:
            self._opened = None
            return None
        return median(outcome.costs) if isinstance(outcome, Observation) else None

    def _device(self, target: str) -> Device:
        """The device, for programs of a target; opened anew for another one."""
        if self._opened is None or self._opened[0] != target:
            self.close()
            self._opened = (target, open_device(self.device_text, parse_target(target)))
        return self._opened[1]

    def _kind(self, device: Device) -> dict[str, str]:
        """What costs from a device depend on, and which device of which machine it is, for people. The processor matters where the machine is the device."""
        here = device.model == LOCAL
        name = f"{self.device_text} on {platform.node()}{f' ({processor_name()})' if here else ''}"
        return {
            "model": device.model, "processor": processor_identity() if here else "", "unit": device.unit.to_text(), "form": device.form,
            "measured_by": "".join(letter if letter.isprintable() else " " for letter in name),
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        """Who answers, and with what versions."""
        return versions() | {"device": self.device_text, "key": self.key, "process": os.getpid(), "identity": self._identity}

    def _count(self, outcome: Observation | Failure | None) -> None:
        counts = self._counts
        failed = not isinstance(outcome, Observation)
        said = counts.last_failure if not failed else clip(str(outcome or self._health.quarantined), 300)
        now = time.monotonic()
        self._counts = Counts(counts.jobs + 1, counts.failures + failed, (*counts.in_the_last_minute(now), now), said)

    def _keep(self, files: Mapping[str, bytes]) -> None:
        for digest, content in files.items():
            if digest_of(content) != digest:
                raise DeviceError(f"received a file that does not match its digest ({digest[:16]}): it was changed in transit")
            path = self._folder / digest
            path.write_bytes(content)
            path.chmod(0o700)  # programs are run
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


def _by_time(outcome: Observation | Failure) -> bool:
    """Whether an outcome follows from how fast the device was."""
    return isinstance(outcome, Observation) or outcome.kind == "timeout"


@dataclass(slots=True)
class _patience:
    """Ends the process when what is inside does not end."""

    timer: threading.Timer = field(init=False)

    def __enter__(self) -> None:
        self.timer = threading.Timer(MOST_RUNS * PATIENCE_SECONDS, os._exit, (GAVE_UP,))
        self.timer.daemon = True
        self.timer.start()

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()


_station: list[Station] = []
"""That of this process: Dask calls functions by their names."""


def become(station: Station) -> None:
    """From now on this process is that station."""
    _station[:] = [station]


def run_job(target: str, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any]) -> dict[str, Any]:
    """See `Station.run`. What goes wrong in ansor is told as a sentence."""
    from distributed import get_worker

    try:
        return _mine().run(target, text, files, canary) | {"worker": get_worker().address}
    except (AnsorError, OSError) as error:
        return _error(error)


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
