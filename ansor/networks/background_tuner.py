"""The process that tunes a kept network beside the one that runs it: `python -m ansor.networks.background_tuner JOB`, the job as JSON.

It says `better` each time that it has kept a network which is faster as a whole, at the end `done`, or `failed` and why. It gives way to all other processes,
and ends with the one that asked for it.
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
from ansor.run.voice import Voice, quiet
from ansor.support.settings import cache_part
from ansor.support.termination import termination
from ansor.support.text import first_line
from ansor.targets.base import parse_target

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the time, after each of which what was found is tried in the network."""
LOWEST = 19
LOOK_SECONDS = 1.0
PART = "background"


@dataclass(frozen=True)
class Job:
    """name: by which the network is kept; minutes: of tuning; torch_threads: those of PyTorch's kernels, where it may run some; parent: its process."""

    name: str
    target: str
    minutes: float
    torch_threads: int
    library: bool
    seed: int
    parent: int


def tuned(job: Job) -> Iterator[str]:
    """Tunes, and gives what is to be said."""
    import torch

    from ansor.graph.rivals import faster

    kept, target = unweighted(job.name), parse_target(job.target)
    current = kept.network(target) if kept is not None else None
    if kept is None or current is None:
        raise CacheError("asked to tune a network that the cache folder does not have any more; see that $ANSOR_CACHE is a permanent, writable folder")
    torch.set_num_threads(job.torch_threads)
    records = cache_part(PART) / f"{job.name}.jsonl"
    for before, share in zip((0.0, *SHARES), SHARES, strict=False):
        asked = RunOptions.of({"minutes": job.minutes * (share - before), "records": records, "seed": job.seed, "progress": False})
        found = compiled(kept.extracted, target, asked, Voice(), library=job.library, on_tasks=quiet)
        if faster(found, current, None, target.threads):
            kept, current = kept.keep(found), found
            yield "better"
    kept.finish()
    yield "done"


def _end_with(parent: int) -> None:
    """Asks this process to end when its parent does, however that ends; and ends it where it does not."""
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
        except Exception as error:  # whatever it is, the other process goes on
            print(f"failed {first_line(error)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
