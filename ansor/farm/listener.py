"""Dask's TLS listener, with limits on connections that have not shown a certificate yet, so that silent ones cannot lock others out."""

from __future__ import annotations

import asyncio
import resource
from asyncio import TimerHandle
from collections.abc import Awaitable, Callable
from typing import Any

from distributed.comm.registry import backends
from distributed.comm.tcp import TLSBackend, TLSListener

HANDSHAKE_SECONDS = 10.0
"""Dask's own clients try to connect for as long."""

MOST_STRANGERS = 1024


def install(seconds: float = HANDSHAKE_SECONDS) -> None:
    """Limit all new TLS listeners of this process. A handshake may take this many seconds. At most MOST_STRANGERS connections may be in their handshake, and
    they may use a quarter of the files that the process may open; beyond that, the oldest one is closed."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_STRANGERS if files == resource.RLIM_INFINITY else max(1, min(MOST_STRANGERS, files // 4))
    backends["tls"] = _Backend(seconds, most)


class _Backend(TLSBackend):  # type: ignore[misc]  # distributed has no types
    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most

    def get_listener(self, loc: str, handle_comm: Callable[..., Awaitable[None]], deserialize: bool, **options: Any) -> GuardedListener:
        return GuardedListener(loc, handle_comm, deserialize, **options).limited(self._seconds, self._most)


class GuardedListener(TLSListener):  # type: ignore[misc]  # distributed has no types
    """See `install`."""

    def limited(self, seconds: float, most: int) -> GuardedListener:
        """This listener with these limits."""
        self._seconds, self._most = seconds, most
        self._strangers: dict[Any, TimerHandle] = {}  # the oldest first
        return self

    def _handle_stream(self, stream: Any, address: Any) -> Awaitable[None]:
        """Called for each connection as it is accepted, before the next one is."""
        while len(self._strangers) >= self._most:
            oldest = next(iter(self._strangers))
            self._strangers.pop(oldest).cancel()
            oldest.close()
        self._strangers[stream] = asyncio.get_running_loop().call_later(self._seconds, stream.close)
        handled: Awaitable[None] = super()._handle_stream(stream, address)
        return handled

    async def _prepare_stream(self, stream: Any, address: str) -> Any:
        """The stream after its handshake; None if that failed."""
        try:
            return None if stream.closed() else await super()._prepare_stream(stream, address)  # waiting for a closed one would never end
        finally:
            limit = self._strangers.pop(stream, None)
            if limit is not None:
                limit.cancel()
