"""Devices that count what they were given, and break."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansor.codegen.artifact import Artifact
from ansor.codegen.source import CSource
from ansor.errors import DeviceError
from ansor.measure.device import Job, Observation
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.targets.unit import INSTRUCTIONS, SECONDS, Unit


class Board:
    """Gives each job a cost of its own, after a while; `failures` come first."""

    model, unit, form, alone = "board", INSTRUCTIONS, "program", False

    def __init__(self, name: str, failures: Sequence[Failure | Observation] = (), seconds: float = 0.0) -> None:
        self.name, self._failures, self._seconds = name, list(failures), seconds
        self.ran: list[str] = []
        self.busy = threading.Lock()
        self.closed = 0

    def run(self, job: Job) -> Observation | Failure:
        assert self.busy.acquire(blocking=False), "two jobs at once"
        try:
            time.sleep(self._seconds)
            self.ran.append(job.artifact.symbol)
            return self._failures.pop(0) if self._failures else Observation((float(job.artifact.symbol),), self.unit)
        finally:
            self.busy.release()

    def close(self) -> None:
        self.closed += 1


def job(number: int) -> Job:
    return Job(MeasureTask("task"), Artifact(CSource("", "kernel", ()), Path("none"), str(number)))


def test_each_job_runs_once_on_one_of_the_devices() -> None:
    boards = [Board("a", seconds=0.01), Board("b", seconds=0.01)]
    queue = DeviceQueue(boards)
    outcomes = [future.result().outcome for future in [queue.submit(job(number)) for number in range(1, 21)]]
    assert [outcome.costs for outcome in outcomes if isinstance(outcome, Observation)] == [(float(number),) for number in range(1, 21)]
    assert sorted(map(int, boards[0].ran + boards[1].ran)) == list(range(1, 21)) and boards[0].ran and boards[1].ran
    queue.close()
    assert [board.closed for board in boards] == [1, 1]


def test_a_broken_link_costs_a_second_try_and_no_more() -> None:
    lost = Failure("link_lost", "the cable was cut")
    board = Board("a", [lost])
    assert isinstance(DeviceQueue([board]).submit(job(1)).result().outcome, Observation) and board.ran == ["1", "1"]
    board = Board("a", [lost, lost])
    assert DeviceQueue([board]).submit(job(1)).result().outcome == lost and board.ran == ["1", "1"]
    board = Board("a", [Failure("crash", "SIGSEGV")])
    assert isinstance(DeviceQueue([board]).submit(job(1)).result().outcome, Failure) and board.ran == ["1"]


@pytest.mark.parametrize(("costs", "unit"), [((), INSTRUCTIONS), ((0.0,), INSTRUCTIONS), ((float("nan"),), INSTRUCTIONS), ((1.0,), SECONDS)])
def test_a_device_that_breaks_its_word_is_told(costs: tuple[float, ...], unit: Unit) -> None:
    with pytest.raises(DeviceError, match="device a.*mend the device"):
        DeviceQueue([Board("a", [Observation(costs, unit)])]).submit(job(1)).result()


def test_what_waits_is_forgotten_when_a_run_stops() -> None:
    boards = [Board("a", seconds=0.05), Board("b", seconds=0.05)]
    queue = DeviceQueue(boards)
    for number in range(1, 9):
        queue.submit(job(number))
    queue.stop()
    assert len(boards[0].ran) + len(boards[1].ran) <= 4 and boards[0].closed == boards[1].closed == 1
    assert isinstance(queue.submit(job(9)).result().outcome, Observation)
