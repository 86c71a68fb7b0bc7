"""The scheduler of a farm: Dask's scheduler, with settings for devices."""

from __future__ import annotations

import asyncio
import logging
import resource
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ansor.errors import DeviceError
from ansor.farm.address import SchedulerAddress, bracketed, check_dashboard, is_loopback, security

if TYPE_CHECKING:
    from distributed.security import Security

MOST_DEATHS = 2
"""How many workers may die while they run one job. At the next death the job is abandoned."""

DASHBOARD = "ansor-dashboard"
"""The key of the dashboard's address in the metadata that Dask's scheduler keeps for its clients."""

SPANS = "spans"
"""Dask's extension that records what ran between two idle moments. Dask never frees these records, so our schedulers and workers run without it."""

SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": MOST_DEATHS,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.work-stealing": True,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "20s",
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


def configure(others: Mapping[str, Any] | None = None) -> None:
    """Configure Dask in this process; a configuration file of the user does not override these settings. Only critical messages are logged."""
    import dask
    from distributed.versions import VersionMismatchWarning  # the import also sets up logging, which is silenced below

    warnings.filterwarnings("ignore", category=VersionMismatchWarning)  # `ansor.farm.versions` reports it as a sentence
    warnings.filterwarnings("ignore", message="Port [0-9]+ is already in use")  # the dashboard takes another port: `serve` reports its address
    warnings.filterwarnings("ignore", message="Creating scratch directories")  # about slow disks, for spilling, which is off
    dask.config.set(SETTINGS | dict(others or {}))
    for name in [one for one in logging.root.manager.loggerDict if one.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is reported as sentences


def serve(place: SchedulerAddress, dashboard: str, patience: float, handshake: float, ready: Callable[[str, str], None]) -> None:
    """Run a scheduler until Ctrl-C. A worker that is silent for `patience` seconds counts as gone; a connection that shows no certificate within `handshake`
    seconds is closed. `ready` is called with the addresses of the scheduler and of its dashboard, '' if there is none.

    Raises DeviceError if it cannot listen.
    """
    from ansor.farm import listener

    check_dashboard(dashboard)
    guarded = security(place)
    configure({"distributed.scheduler.worker-ttl": f"{patience:g}s"})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each worker, client and unknown connection takes one or more files
    listener.install(handshake)
    try:
        asyncio.run(_serve(place, guarded, dashboard, ready))
    except (OSError, RuntimeError) as error:  # Dask wraps the cause in a RuntimeError
        reason = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error
        words = reason.strerror or reason if isinstance(reason, OSError) else reason
        raise DeviceError(f"asked for the scheduler of a farm at {place.url}: {words}; choose another address with --listen") from error


async def _serve(place: SchedulerAddress, guarded: Security | None, dashboard: str, ready: Callable[[str, str], None]) -> None:
    from distributed import Scheduler
    from distributed.scheduler import DEFAULT_EXTENSIONS

    shows = bool(dashboard) and find_spec("bokeh") is not None
    options: dict[str, Any] = {"security": guarded} if guarded is not None else {}
    options["extensions"] = {name: one for name, one in DEFAULT_EXTENSIONS.items() if name != SPANS}
    protocol, pages = "tcp" if guarded is None else "tls", dashboard or "127.0.0.1:0"
    async with Scheduler(host=bracketed(place.host), port=place.port, protocol=protocol, dashboard=shows, dashboard_address=pages, **options) as scheduler:
        scheduler.total_nthreads_history = deque(scheduler.total_nthreads_history, maxlen=1)  # grows with every worker; only spans read it
        page = f"http://{dashboard.rpartition(':')[0]}:{scheduler.http_server.port}/status" if shows else ""
        scheduler.task_metadata[DASHBOARD] = f"{page} on {place.host}" if page and not is_loopback(place.host) else page  # members ask for it
        ready(scheduler.address, page)
        await scheduler.finished()
