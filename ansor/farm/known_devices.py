"""What a client knows about the devices with its key: their workers, the jobs that they did for it, and the usual cost of the canary on each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ansor.support.text import counted

MOST_DEVICES = 1024  # those that answered last; a device whose worker was restarted counts as a new one
MOST_LINES = 16  # on a display


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """One device. name: for display. worker: the address. done: the number of jobs. canary: its usual cost there, 0 if it is unknown or does not count."""

    name: str
    worker: str
    done: int = 0
    canary: float = 0.0


class KnownDevices:
    """The known devices by identity. Several threads may use it at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, KnownDevice] = OrderedDict()

    def hear(self, identity: str, name: str, worker: str, canary: float = 0.0) -> None:
        """Note that a device answered. canary: its usual cost there, 0 if the answer does not give it."""
        with self._lock:
            known = self._known.get(identity, KnownDevice(name, worker))
            self._known[identity] = replace(known, worker=worker, canary=canary or known.canary)
            self._known.move_to_end(identity)
            while len(self._known) > MOST_DEVICES:
                self._known.popitem(last=False)

    def note_done(self, identity: str) -> None:
        """Count a finished job of a device."""
        with self._lock:
            if identity in self._known:
                self._known[identity] = replace(self._known[identity], done=self._known[identity].done + 1)

    def forget_canary(self, identity: str) -> None:
        """Stop comparing other devices with this one."""
        with self._lock:
            if identity in self._known:
                self._known[identity] = replace(self._known[identity], canary=0.0)

    def others(self, identity: str, workers: Collection[str]) -> tuple[float, ...]:
        """The usual costs of the canary on the other devices of these workers."""
        with self._lock:
            return tuple(one.canary for other, one in self._known.items() if other != identity and one.canary > 0 and one.worker in workers)

    def lines(self) -> Sequence[str]:
        """What each device did, one line each, for display."""
        with self._lock:
            lines = sorted(f"{one.name}: {counted(one.done, 'job')} done" for one in self._known.values())
        more = len(lines) - MOST_LINES
        return [*lines[:MOST_LINES], *([f"and {counted(more, 'device')} more"] if more > 0 else [])]
