"""Do two boards measure twice as fast as one? Agents on this machine stand in for boards.

    python benchmarks/two_devices.py [--trials 16] [--milliseconds 300]

One agent, and then two, measure the same programs, drawn from a space of a matrix product. Each program runs for about `--milliseconds` per repeat, so that
running dominates, as on boards. It prints trials per second, and how many programs ran on each agent.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from common import console

from ansor.measure.agent.build import built_agent
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import open_device
from ansor.measure.failure import Failure
from ansor.measure.measurer import Candidate, Measurer
from ansor.measure.timing import Stopping, TimingOptions
from ansor.search.sampling import SampledSpace
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask

TARGET = parse_target("cpu -threads=1")


class Counted:
    """A device that records what it ran."""

    def __init__(self, device: Device) -> None:
        self.device, self.ran = device, list[str]()
        self.name, self.model, self.unit, self.form, self.alone = device.name, device.model, device.unit, device.form, device.alone

    def run(self, job: Job) -> Observation | Failure:
        self.ran.append(job.artifact.digest)
        return self.device.run(job)

    def close(self) -> None:
        self.device.close()


def candidates(count: int) -> list[Candidate]:
    """This many different legal programs of one task."""
    task, rng = SearchTask("matmul", (192, 192, 192), TARGET), np.random.default_rng(0)
    space = task.spaces[-1]
    rows = SampledSpace(space).sample(count, rng)
    return [Candidate(task.measure_task, task.source(space.sketch, tuple(map(int, row)), f"program{k}")) for k, row in enumerate(rows)]


def measured(count: int, programs: list[Candidate], timing: TimingOptions, folder: Path) -> tuple[float, list[list[str]]]:
    """Seconds that this many agents take for the programs, and the programs that each ran. The first program, which also builds and runs the reference, is not
    counted."""
    agent = built_agent()
    folder.mkdir()
    boards = [Counted(open_device(f"agent-stdio:{agent} -store {folder / f'board{count}{k}'}", TARGET)) for k in range(count)]
    with Measurer(TARGET, boards, timing=timing, jobs=1) as measurer:
        for board in boards:  # runs the reference once on each
            first = next(iter(Measurer(TARGET, board, timing=timing, jobs=1).measure(programs[:1])))
            assert first.failure is None, first.failure
            board.ran.clear()
        start = time.monotonic()
        results = list(measurer.measure(programs[1:]))
        seconds = time.monotonic() - start
    failures = [str(one.failure) for one in results if one.failure is not None]
    assert not failures, failures[0]
    return seconds, [board.ran for board in boards]


def main() -> None:
    """Measure alternately with one agent and with two, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--milliseconds", type=float, default=300.0)
    asked = parser.parse_args()
    timing = TimingOptions(repeat=3, min_repeat_ms=asked.milliseconds, stopping=Stopping(contender_repeats=0, cut_ratio=1e9), timeout_seconds=60)
    programs, rates = candidates(asked.trials + 1), []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 2, 1, 2):
            seconds, ran = measured(count, programs, timing, Path(folder) / str(len(rates)))
            every = [digest for board in ran for digest in board]
            once = len(every) == len(set(every))
            rates.append(len(every) / seconds)
            console().print(f"{count} agents: {rates[-1]:.2f} trials/s, {' + '.join(str(len(board)) for board in ran)} programs, each once: {once}")
    console().print(f"two against one: {(rates[1] + rates[3]) / (rates[0] + rates[2]):.2f}")


if __name__ == "__main__":
    main()
