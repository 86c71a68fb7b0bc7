"""The workers with a client's key: which ones are there, and which ones get no jobs of its run."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ansor.farm.address import SUSPENDED

if TYPE_CHECKING:
    from distributed import Client

LOOK_SECONDS = 2.0
"""The shortest time between two queries of the scheduler: its answer is long, and many jobs wait at a time."""


class Workers:
    """The workers with a key, by address. Several threads may use it at a time."""

    def __init__(self, client: Client, key: str) -> None:
        self._client, self._key = client, key
        self._lock, self._looked = threading.Lock(), float("-inf")
        self._there: list[str] = []
        self._left_out: frozenset[str] = frozenset()

    @property
    def all_are_used(self) -> bool:
        """Whether every worker that is there gets jobs."""
        with self._lock:
            return not self._left_out & set(self._there)

    def there(self) -> list[str]:
        """The workers that are there and not excluded, as of at most LOOK_SECONDS ago."""
        with self._lock:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._there = [address for address, one in _known(self._client).items() if self._key in one["resources"]]
                self._looked = time.monotonic()
            return [one for one in self._there if one not in self._left_out]

    def leave_out(self, worker: str) -> None:
        """Exclude a worker from further jobs."""
        with self._lock:
            self._left_out = (self._left_out & set(self._there)) | {worker}

    def keys_text(self) -> str:
        """Which keys there are, as a part of messages."""
        found = {key for one in _known(self._client).values() for key in one["resources"]}
        keys = {key for key in found if not key.startswith(SUSPENDED)}
        suspended = {key.removeprefix(SUSPENDED) for key in found} - keys
        parts = [
            *([f"there are devices with the keys {', '.join(sorted(keys))}"] if keys else []),
            *([f"those with the keys {', '.join(sorted(suspended))} are suspended, and `ansor farm status` says why"] if suspended else []),
        ]
        return "; ".join(parts) or "there are no devices: start some with `ansor farm worker`"


def _known(client: Client) -> dict[str, Any]:
    """What the scheduler knows about all workers."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1).get("workers", {})  # nothing, once the client is closed
    return found
