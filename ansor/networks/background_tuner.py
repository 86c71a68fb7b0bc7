"""The process that tunes a kept network while another process runs it. Its argument is the job, as JSON.

It prints `better` each time it has kept a network that is faster as a whole, and at the end `done`, or `failed` and the reason. It runs at the lowest priority,
and ends when its parent process ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.errors import CacheError
from ansor.networks.compiling import compiled
from ansor.networks.kept_tuning import unweighted
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter, quiet
from ansor.support.settings import cache_part
from ansor.support.termination import termination
from ansor.support.text import first_line
from ansor.targets.base import parse_target

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Fractions of the time after which the programs found so far are tried in the network."""
LOWEST = 19
LOOK_SECONDS = 1.0
PART = "background"


@dataclass(frozen=True)
class Job:
    """name: of the kept network; minutes: tuning time; torch_threads: for PyTorch's kernels, if `library` allows them; parent: the parent process's id."""

    name: str
    target: str
    minutes: float
    torch_threads: int
    library: bool
    seed: int
    parent: int


def tuned(job: Job) -> Iterator[str]:
    """Tune, and yield the lines to print."""
    import torch

    from ansor.graph.rivals import faster

    kept, target = unweighted(job.name), parse_target(job.target)
    current = kept.network(target) if kept is not None else None
    if kept is None or current is None:
        raise CacheError("asked to tune a network that is no longer in the cache folder; make sure that $ANSOR_CACHE is a permanent, writable folder")
    torch.set_num_threads(job.torch_threads)
    records = cache_part(PART) / f"{job.name}.jsonl"
    for before, share in zip((0.0, *SHARES), SHARES, strict=False):
        asked = RunOptions.of({"minutes": job.minutes * (share - before), "records": records, "seed": job.seed, "progress": False})
        found = compiled(kept.extracted, target, asked, Reporter(), library=job.library, on_tasks=quiet, divides=False)
        if faster(found, current, None, target.threads):
            kept, current = kept.keep(found), found
            yield "better"
    kept.finish()
    yield "done"


def _end_with(parent: int) -> None:
    """Ask this process to end when its parent does, for whatever reason, and kill it if it does not."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5 * LOOK_SECONDS)
    os.killpg(0, signal.SIGKILL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job."""
    (text,) = sys.argv[1:] if arguments is None else arguments
    job = Job(**json.loads(text))
    os.nice(LOWEST)
    threading.Thread(target=_end_with, args=(job.parent,), daemon=True).start()
    with termination():
        try:
            for line in tuned(job):
                print(line, flush=True)
        except KeyboardInterrupt:
            return 1
        except Exception as error:  # whatever the error, the parent process has to continue
            print(f"failed {first_line(error)}", flush=True)
    return 0
