"""`farm://HOST:PORT?key=KEY`: the devices with a key, presented as one device for each job in flight."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ansor.errors import DeviceError
from ansor.farm.address import FarmText, read_farm
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.failure import Failure
from ansor.measure.turns import Say
from ansor.measure.work_directory import WorkDirectory
from ansor.targets.base import Target
from ansor.targets.unit import Unit

if TYPE_CHECKING:
    from ansor.farm.session import Session

SLOTS_OF_A_DEVICE = 2  # one job runs while the next one waits at the device; further jobs may wait for their canary
MOST_SLOTS = 256


class _Shared:
    """The session that all slots of a text share. Closing any slot closes it; the next job opens another one."""

    def __init__(self, text: str, target: Target, say: Say) -> None:
        self._farm, self._target, self._say = read_farm(text), target, say
        self._lock, self._closed = threading.Lock(), 0
        self._open: Session | None = _session(self._farm, target, say)
        self.about = self._open.about
        held = max(0, self._farm.canary - 1) if Unit.from_text(self.about.unit).scale else 0
        wanted = self._farm.slots or (SLOTS_OF_A_DEVICE + held) * len(self._open.workers)
        self.slots = min(MOST_SLOTS, max(1, wanted))
        self._work: WorkDirectory | None = None

    def session(self) -> Session:
        """The open session; builds its canary first if the devices have a clock. Raises DeviceError if `close` was called meanwhile."""
        from ansor.farm.canary import canary_job
        from ansor.farm.codec import pack_job

        closed = self._closed
        with self._lock:
            if closed != self._closed:
                raise DeviceError("the run was stopped before a device answered")
            if self._open is None:
                self._open = self._again()
            if self._open.canary is None and self._farm.canary and Unit.from_text(self.about.unit).scale:
                self._work = self._work or WorkDirectory()
                self._open.watch(pack_job(canary_job(self._target, self.about.form, self._work.path)))
            if closed != self._closed:
                raise DeviceError("the run was stopped before a device answered")
            return self._open

    def _again(self) -> Session:
        """Open another session. Raises DeviceError if the devices are of another model now: their costs would count as those of the first model."""
        found = _session(self._farm, self._target, self._say)
        if found.about == self.about:
            return found
        found.close()
        raise DeviceError(
            f"asked to measure on {self._farm.text}, whose model was {self.about}; the devices with that key are {found.about} now: start another run"
        )

    def lines(self) -> Sequence[str]:
        """See `Session.lines`."""
        session = self._open
        return () if session is None else session.lines()

    def close(self) -> None:
        """Close the session, so that all waiting threads stop waiting, and remove the canary's files."""
        self._closed += 1
        if (session := self._open) is not None:
            session.close()  # before the lock: the thread that holds it may be waiting for devices
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None
            if self._work is not None:
                self._work.close()
                self._work = None


def _session(farm: FarmText, target: Target, say: Say) -> Session:
    from ansor.farm.session import Session  # imports Dask, which only farms need

    return Session(farm, str(target), say)


class FarmSlot:
    """A slot for one job in flight on a farm."""

    alone = False

    def __init__(self, shared: _Shared, number: int, text: str) -> None:
        self.name = text if number == 0 else f"{text}#{number}"
        self.model, self.unit, self.form = shared.about.model, Unit.from_text(shared.about.unit), shared.about.form
        self._shared, self._number = shared, number

    def lines(self) -> Sequence[str]:
        """What the farm's devices did. Only the first slot reports it."""
        return self._shared.lines() if self._number == 0 else ()

    def run(self, job: Job) -> Observation | Failure:
        """See `Device.run`. Raises DeviceError if no device is left, or the farm is gone."""
        return self._shared.session().run(job)

    def close(self) -> None:
        """Close the session, and with it all slots."""
        self._shared.close()


def _open_all(text: str, target: Target, say: Say) -> Sequence[Device]:
    shared = _Shared(text, target, say)
    return [FarmSlot(shared, number, text) for number in range(shared.slots)]


def _open(text: str, target: Target, say: Say) -> Device:
    return FarmSlot(_Shared(text, target, say), 0, text)


def missing() -> str:
    """What this machine lacks to reach a farm; '' for nothing."""
    return "" if find_spec("distributed") else "the package distributed is not installed; run `pip install 'ansor[farm]'`"


KIND = DeviceKind("farm", "devices with a key, on many machines: farm://HOST:PORT?key=KEY", _open, missing, several=_open_all, check=read_farm)
