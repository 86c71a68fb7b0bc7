"""Overhead, scaling and fault tolerance of a farm. Everything runs on this machine: a scheduler and workers, started as users start them.

    python benchmarks/farm.py faults [--trials 1000]         workers killed and cut off at random moments: each trial is measured once, or reported
    python benchmarks/farm.py overhead [--trials 200]        extra milliseconds for a trial, compared with using the same device directly
    python benchmarks/farm.py scaling [--milliseconds 200]   1, 2, 4, 8 devices that only wait
    python benchmarks/farm.py boards [--trials 400]          ResNet-18 on one and on four emulated boards that answer late
    python benchmarks/farm.py thousand [--devices 1000]      Dask's scheduler with this many workers: jobs per second, processor time per job

The first three use simulated devices, which wait and return a cost. They exit with 1 if a trial is neither measured exactly once nor reported, if the overhead
of a trial exceeds 15 ms, or if scaling is less than 0.9 of linear. Every run starts without records or caches.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from farm_thousand import thousand
from rich.table import Table

from ansor import extract_tasks
from ansor.api import tune_tasks
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import Failure
from ansor.measure.measurer import Candidate, Measurer
from ansor.run.states import TaskState
from ansor.run.zero_tuning import pick
from ansor.targets.base import parse_target
from ansor.zoo.catalogue import NETWORKS
from tests.counted_agent import counting_agent
from tests.farm_cluster import Cluster
from tests.farm_faults import run_jobs, what_is_wrong
from tests.pretended_device import PretendedDevice, job

TARGET = parse_target("cpu -threads=1")
BOARD = "arm -mcpu=cortex-a72"
MOST_OVERHEAD_MS = 15.0
LEAST_SCALING = 0.9


def measured(devices: str | Sequence[str], jobs: Sequence[Job]) -> tuple[list[Observation | Failure], float]:
    """The outcomes of jobs, and the total seconds."""
    opened = open_devices(devices, TARGET, lambda text: console().print(text))
    queue = DeviceQueue(opened)
    try:
        queue.submit(jobs[0]).result()
        started = time.monotonic()
        futures = [queue.submit(one) for one in jobs[1:]]
        return [future.result().outcome for future in futures], time.monotonic() - started
    finally:
        queue.close()


def faults(folder: Path, trials: int) -> bool:
    """Kill two of four workers with two keys, and disconnect a third, which comes back. Compare with a run without faults; true if nothing is wrong."""
    undisturbed = run_jobs(folder / "undisturbed", trials, 10, faults=False)
    disturbed = run_jobs(folder / "disturbed", trials, 10, faults=True)
    right = True
    for key, ran in disturbed.items():
        again, wrong = sum(ran.begun.values()) - len(ran.begun), what_is_wrong(ran, undisturbed[key])
        console().print(f"{key}: {len(ran.outcomes)} trials, {len(ran.costs)} with a cost, {len(ran.reported)} reported; {again} restarted", soft_wrap=True)
        console().print("\n".join(f"{key}: {one}" for one in wrong) or f"{key}: each trial once or reported, costs as without faults", soft_wrap=True)
        right = right and not wrong
    return right


def overhead(folder: Path, trials: int) -> bool:
    """Alternate between the device itself and a farm. True if the overhead with one job in flight, the worst case, is at most MOST_OVERHEAD_MS."""
    folder.mkdir(exist_ok=True)
    text = f"pretended:direct,{folder},20"
    jobs = [job(folder, str(number + 1)) for number in range(trials)]
    rows: dict[str, list[float]] = {"directly": [], "one job in flight": [], "two": []}
    with Cluster(folder / "farm") as cluster:
        cluster.pretended("board", "one", 20)
        for _ in range(3):
            device = PretendedDevice(text)
            started = time.monotonic()
            for one in jobs[1:]:
                device.run(one)
            rows["directly"].append((time.monotonic() - started) / (trials - 1))
            for name, slots in (("one job in flight", 1), ("two", 2)):
                rows[name].append(measured(f"farm://{cluster.url}?key=board&slots={slots}", jobs)[1] / (trials - 1))
    table = Table("", "ms per trial", "overhead")
    direct = statistics.median(rows["directly"])
    for name, seconds in rows.items():
        table.add_row(name, f"{1e3 * statistics.median(seconds):.1f}", f"{1e3 * (statistics.median(seconds) - direct):.1f}")
    console().print(table)
    more = 1e3 * (statistics.median(rows["one job in flight"]) - direct)
    console().print(f"overhead: {more:.1f} ms per trial; the limit is {MOST_OVERHEAD_MS:g}")
    return more <= MOST_OVERHEAD_MS


def scaling(folder: Path, milliseconds: float, trials: int = 40) -> bool:
    """Measure the rate with more and more devices, and as many trials for each. True if all rates are at least LEAST_SCALING of linear."""
    table = Table("devices", "trials/s", "of linear")
    folder.mkdir(exist_ok=True)
    with Cluster(folder / "farm") as cluster:
        first, least = 0.0, 1.0
        for count in (1, 2, 4, 8):
            for number in range(count):
                cluster.pretended(f"with{count}", f"d{count}-{number}", milliseconds)
            jobs = [job(folder, str(number + 1)) for number in range(trials * count + 1)]
            rate = trials * count / measured(f"farm://{cluster.url}?key=with{count}", jobs)[1]
            first = first or rate
            least = min(least, rate / first / count)
            table.add_row(str(count), f"{rate:.2f}", f"{rate / first / count:.2f}")
    console().print(table)
    console().print(f"{least:.2f} of linear; the limit is {LEAST_SCALING:g}")
    return least >= LEAST_SCALING


def boards(folder: Path, trials: int, delay: float, pixels: int, agents: bool, seed: int = 0) -> None:
    """Tune the same tasks with one board and with four: emulators, or agents that use them, which answer late. An emulator counts the best programs."""
    import torch

    tasks, weights = extract_tasks(NETWORKS["resnet18"].model(), (torch.zeros(1, 3, pixels, pixels),), BOARD)
    rows: list[tuple[float, float]] = []
    for task in tasks:
        pick(task)  # so that neither run includes what is derived once per task
    with Cluster(folder / "farm") as cluster:
        for count in (1, 4):
            for number in range(count):
                board = counting_agent(folder / f"board{count}{number}", "qemu-aarch64 -cpu cortex-a72") if agents else "qemu-aarch64"
                cluster.worker(f"boards{count}", f"late:{delay},{board}")
            started = time.monotonic()
            devices = [f"farm://{cluster.url}?key=boards{count}"]
            states = tune_tasks(tasks, weights, trials=trials, devices=devices, seed=seed, progress=False)
            rows.append((time.monotonic() - started, _instructions(states)))
            done, failed = sum(state.trials for state in states), sum(sum(state.failures.values()) for state in states)
            seconds, million = rows[-1][0], rows[-1][1] / 1e6
            console().print(f"boards: {count}; {seconds:.1f} s, {done} trials, {failed} failed; {million:.2f} million instructions")
    (alone, one), (seconds, four) = rows
    console().print(f"four against one: {seconds / alone:.2f} of the time, {four / one:.3f} of the instructions")


def _instructions(states: Sequence[TaskState]) -> float:
    """Instructions of the best programs, weighted by their uses in the network; infinite if a task has no program."""
    total = 0.0
    with Measurer(BOARD, "qemu-aarch64") as measurer:
        for state in states:
            if state.best is None:
                return math.inf
            source = state.task.source(state.best.sketch, state.best.row, "best")
            (found,) = measurer.measure([Candidate(state.task.measure_task, source)])
            total += found.cost * state.weight
    return total


def main() -> int:
    """Run one of the five. Returns 1 if one of the first three falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("faults", "overhead", "scaling", "boards", "thousand"))
    parser.add_argument("--trials", type=int)
    parser.add_argument("--milliseconds", type=float, default=200.0)
    parser.add_argument("--delay", type=float, default=0.4, help="delay of a board's answer, in seconds")
    parser.add_argument("--pixels", type=int, default=32, help="size of the images for `boards`; emulators take long for larger ones")
    parser.add_argument("--agents", action="store_true", help="use agents that run programs under a counting emulator as boards, instead of emulators")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search, for `boards`")
    parser.add_argument("--devices", type=int, default=1000)
    asked = parser.parse_args()
    os.environ["ANSOR_FARM"] = "/nonexistent"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.what == "faults":
            return 0 if faults(folder, asked.trials or 1000) else 1
        if asked.what == "overhead":
            return 0 if overhead(folder, asked.trials or 200) else 1
        if asked.what == "scaling":
            return 0 if scaling(folder, asked.milliseconds) else 1
        if asked.what == "boards":
            boards(folder, asked.trials or 400, asked.delay, asked.pixels, asked.agents, asked.seed)
        else:
            thousand(asked.devices, asked.trials or 5000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
