"""Decides which results count. A shift is what a device runs between two canaries. Its results count if the canary at its end has its usual cost."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

KEPT = 64  # the last shifts of a device
MOST_DEVICES = 1024  # those that answered last; a device whose worker was restarted counts as a new one


class Shifts:
    """What a client knows about the shifts of devices, and its jobs that wait for the end of one. Several threads may use it at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._judged: OrderedDict[str, Mapping[int, bool]] = OrderedDict()
        self._asking: Counter[str] = Counter()  # devices that a thread is asking to end their shift
        self._on_their_way, self._waiting, self._closed = 0, 0, False

    @property
    def on_their_way(self) -> int:
        """The number of jobs in flight."""
        return self._on_their_way

    @contextmanager
    def job(self) -> Iterator[None]:
        """A job is in flight inside this block."""
        with self._changed:
            self._on_their_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._on_their_way -= 1
                self._changed.notify_all()

    def hear(self, device: str, judged: Mapping[int, bool]) -> None:
        """Merge a device's list of its last shifts, which says of each whether its results count. An older list may arrive after a newer one."""
        with self._changed:
            known = {**self._judged.get(device, {}), **judged}
            self._judged[device] = dict(sorted(known.items())[-KEPT:])
            self._judged.move_to_end(device)
            while len(self._judged) > MOST_DEVICES:
                self._judged.popitem(last=False)
            self._changed.notify_all()

    def wait(self, device: str, shift: int, seconds: float) -> bool | None:
        """Whether the results of a shift count. None if it has not ended within that time, or if no running job can end it: then ask the device."""

        def over() -> bool:
            if self._closed or shift in self._judged.get(device, {}):
                return True
            return not self._asking[device] and self._waiting >= self._on_their_way

        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            try:
                while not self._changed.wait_for(over, seconds) and self._asking[device]:
                    pass  # the thread that asks has its own timeout
                return self._judged.get(device, {}).get(shift)
            finally:
                self._waiting -= 1

    def known(self, device: str, shift: int) -> bool | None:
        """Whether the results of a shift count; None if that is not known yet."""
        with self._changed:
            return self._judged.get(device, {}).get(shift)

    @contextmanager
    def asking(self, device: str) -> Iterator[None]:
        """Inside this block, this thread asks a device to end its shift, so others need not. Threads that wait for other devices may ask those meanwhile."""
        with self._changed:
            self._asking[device] += 1
            self._waiting += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._asking[device] -= 1
                if not self._asking[device]:
                    del self._asking[device]
                self._waiting -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Make all waiting threads stop waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
