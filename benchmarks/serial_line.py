"""Trials over an emulated serial line: `python benchmarks/serial_line.py [--baud 115200] [--trials 24] [--boards 2]`.

It first times memory alone: it writes 4 KiB, runs a program and reads 512 bytes, with the monitor as a process behind a line with the byte rate of a real one.
Then it runs whole trials of a dense layer of 8-bit integers on a Cortex-M4 in QEMU, with the monitor behind such a line: on one board, and on several. It needs
qemu-system-arm.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ansor.api import tune_tasks
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.failure import Failure
from ansor.measure.wire.monitor_build import built_process
from ansor.measure.wire.port import process_port
from ansor.measure.wire.serial import SerialWire
from ansor.targets.boards.catalogue import find_board
from ansor.tasks.task import SearchTask
from ansor.testing.paced_port import BITS_A_BYTE, PacedPort
from ansor.testing.wire_programs import AARCH64, STOP, X86_64

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from board_trials import dense

from tests.measure.boards.paced_line import BOARD, TARGET, paced_line


class Timed(BoardDevice):
    """Records the seconds of each run, and the bytes on its line."""

    def __init__(self, *words: object) -> None:
        super().__init__(*words)  # type: ignore[arg-type]
        self.runs: list[tuple[float, float]] = []

    def run(self, job: Job) -> Observation | Failure:
        start, before = time.monotonic(), self._line_bytes()
        try:
            return super().run(job)
        finally:
            self.runs.append((time.monotonic() - start, self._line_bytes() - before))

    def _line_bytes(self) -> float:
        wire = self._transport._wire
        return wire.line_bytes if isinstance(wire, SerialWire) else 0.0


def memory(baud: int, rounds: int) -> None:
    """Time writing, running and reading."""
    rate = baud / BITS_A_BYTE
    wire = SerialWire(PacedPort(process_port((str(built_process()), "1"), "process"), rate), "process", bytes_per_second=rate)
    base, programs = wire.facts.free[0], AARCH64 if platform.machine() in ("aarch64", "arm64") else X86_64
    wire.write(base, programs.adds)
    print("write 4 KiB   run    read 512   all, seconds   of the line, writing")
    for _ in range(rounds):
        times = [time.perf_counter()]
        wire.write(base + 4096, os.urandom(4096))
        times.append(time.perf_counter())
        assert wire.execute(base, base + STOP, 5.0).reason == "stop"
        times.append(time.perf_counter())
        wire.read(base + 4096, 512)
        times.append(time.perf_counter())
        write, run, read = (after - before for before, after in zip(times, times[1:], strict=False))
        print(f"{write:9.3f} {run:8.3f} {read:9.3f} {times[-1] - times[0]:10.3f} {100 * 4096 / rate / write:17.0f} %")
    print(f"repeated {wire.traffic.repeated}, damaged {wire.traffic.damaged}")
    wire.close()


def whole_trials(baud: int, trials: int, boards: int) -> float:
    """Trials per second of a run. The first trial on each board also loads the harness."""
    with ExitStack() as stack:
        devices = [Timed(f"serial:paced{k}", find_board(BOARD), stack.enter_context(paced_line(baud))) for k in range(boards)]
        task = SearchTask(tensors=dense(64, 256, 256), target=TARGET, name="dense")
        start = time.monotonic()
        (state,) = tune_tasks([task], trials=trials, devices=devices)
        rate = state.trials / (time.monotonic() - start)
        assert state.best is not None
    first = [one.runs[0] for one in devices if one.runs]
    later = [run for one in devices for run in one.runs[1:]]
    print(f"{boards} board{'s' * (boards > 1)}: {state.trials} trials, {rate:.2f} per second; first {_seconds(first)}; then {_seconds(later)}; "
          f"the line took {statistics.mean(size for _, size in later) * BITS_A_BYTE / baud:.2f} s of a trial, "
          f"{max(size for _, size in later) * BITS_A_BYTE / baud:.2f} at most")  # fmt: skip
    return rate


def _seconds(runs: Sequence[tuple[float, float]]) -> str:
    seconds = [one for one, _ in runs]
    return f"{statistics.mean(seconds):.2f} s, median {statistics.median(seconds):.2f}, at most {max(seconds):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baud", type=int, default=115_200)
    parser.add_argument("--rounds", type=int, default=5, help="of memory alone")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--boards", type=int, default=2)
    given = parser.parse_args()
    memory(given.baud, given.rounds)
    rates = [whole_trials(given.baud, given.trials, boards) for boards in sorted({1, given.boards})]
    print(f"{given.boards} boards to one: {rates[-1] / rates[0]:.2f}")


if __name__ == "__main__":
    main()
