"""What a client knows of the devices of its key: their workers, what they did for it, and what the canary usually costs on each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ansor.support.text import counted

MOST_DEVICES = 1024  # those last heard of; one whose worker was restarted counts as another
MOST_LINES = 16  # for people


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """One device. name: for people. worker: its address. done: jobs. canary: what it usually costs there, 0 if that is not known or does not count."""

    name: str
    worker: str
    done: int = 0
    canary: float = 0.0


class KnownDevices:
    """By identity. Several threads may use it at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, KnownDevice] = OrderedDict()

    def hear(self, identity: str, name: str, worker: str, canary: float = 0.0) -> None:
        """A device answered. canary: 0 if it did not say what that costs."""
        with self._lock:
            known = self._known.get(identity, KnownDevice(name, worker))
            self._known[identity] = replace(known, worker=worker, canary=canary or known.canary)
            self._known.move_to_end(identity)
            while len(self._known) > MOST_DEVICES:
                self._known.popitem(last=False)

    def note_done(self, identity: str) -> None:
        """A job of a device is done."""
        with self._lock:
            if identity in self._known:
                self._known[identity] = replace(self._known[identity], done=self._known[identity].done + 1)

    def forget_canary(self, identity: str) -> None:
        """Compare others no longer with a device."""
        with self._lock:
            if identity in self._known:
                self._known[identity] = replace(self._known[identity], canary=0.0)

    def others(self, identity: str, workers: Collection[str]) -> tuple[float, ...]:
        """What the canary usually costs on the other devices of these workers."""
        with self._lock:
            return tuple(one.canary for other, one in self._known.items() if other != identity and one.canary > 0 and one.worker in workers)

    def lines(self) -> Sequence[str]:
        """What the devices did, one line for each, for people."""
        with self._lock:
            lines = sorted(f"{one.name}: {counted(one.done, 'job')} done" for one in self._known.values())
        more = len(lines) - MOST_LINES
        return [*lines[:MOST_LINES], *([f"and {counted(more, 'device')} more"] if more > 0 else [])]
