"""Checks whether a scheduler accepts a connection, and says why if it does not. Dask's own clients and workers do not, and may hang when they are dropped."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from ansor.errors import DeviceError
from ansor.farm.address import SchedulerAddress, no_answer, security

FIRST_WORDS_SECONDS = 2.0
"""How long the peer may take for its first words, for which Dask's own limit does not hold."""


def reach(place: SchedulerAddress, role: str, seconds: float) -> None:
    """Connect and disconnect. role: whose certificate to show. Raises DeviceError if there is no connection within that time, or if the
    peer then says nothing for `FIRST_WORDS_SECONDS`."""
    with ThreadPoolExecutor(1) as other:  # this thread may already run an event loop, as in notebooks
        other.submit(asyncio.run, reached(place, role, seconds)).result()


async def reached(place: SchedulerAddress, role: str, seconds: float) -> None:
    """`reach`, for callers in an event loop."""
    from distributed.comm import connect

    guarded = security(place)
    opening = connect(place.url, timeout=seconds, **(guarded.get_connection_args(role) if guarded else {}))
    try:
        line = await asyncio.wait_for(opening, seconds + FIRST_WORDS_SECONDS)
    except TimeoutError:
        why = "what listens there accepts a connection, but says nothing: it is no scheduler, or is stopped"
        raise DeviceError(f"asked for the farm at {place.url}: {why}; start one with `ansor farm scheduler`") from None
    except (OSError, ValueError) as error:
        raise DeviceError(f"asked for the farm at {place.url}: {no_answer(place, error)}") from error
    with suppress(TimeoutError):
        await asyncio.wait_for(line.close(), seconds)
