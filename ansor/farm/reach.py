"""Checks whether a scheduler accepts a connection, and says why if it does not. Dask's own clients and workers do not, and may hang when they are dropped."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from ansor.errors import DeviceError
from ansor.farm.address import SchedulerAddress, no_answer, security


def reach(place: SchedulerAddress, role: str, seconds: float) -> None:
    """Connect and disconnect. role: whose certificate to show. Raises DeviceError if there is no connection within that time."""
    with ThreadPoolExecutor(1) as other:  # this thread may already run an event loop, as in notebooks
        other.submit(asyncio.run, reached(place, role, seconds)).result()


async def reached(place: SchedulerAddress, role: str, seconds: float) -> None:
    """`reach`, for callers in an event loop."""
    from distributed.comm import connect

    guarded = security(place)
    try:
        line = await connect(place.url, timeout=seconds, **(guarded.get_connection_args(role) if guarded else {}))
    except (OSError, ValueError) as error:
        raise DeviceError(f"asked for the farm at {place.url}: {no_answer(place, error)}") from error
    await line.close()
