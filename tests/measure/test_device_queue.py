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
from ansor.measure.device_queue import MOST_LOST, DeviceQueue
from ansor.measure.failure import LINK, Failure
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


def test_several_devices_that_are_left_out_for_one_reason_are_told_once() -> None:
    class Gone(Board):
        def run(self, job: Job) -> Observation | Failure:
            raise DeviceError("the scheduler is gone")

    said: list[str] = []
    queue = DeviceQueue([Gone("a"), Gone("b"), Gone("c"), Board("d")], said.append)
    for number in range(1, 9):
        queue.submit(job(number)).result()
    queue.close()
    assert len(said) == 1 and said[0].endswith("continue: the scheduler is gone")


def test_each_job_runs_once_on_one_of_the_devices() -> None:
    boards = [Board("a", seconds=0.01), Board("b", seconds=0.01)]
    queue = DeviceQueue(boards)
    outcomes = [future.result().outcome for future in [queue.submit(job(number)) for number in range(1, 21)]]
    assert [outcome.costs for outcome in outcomes if isinstance(outcome, Observation)] == [(float(number),) for number in range(1, 21)]
    assert sorted(map(int, boards[0].ran + boards[1].ran)) == list(range(1, 21)) and boards[0].ran and boards[1].ran
    queue.close()
    assert [board.closed for board in boards] == [1, 1]


@pytest.mark.parametrize("kind", LINK)
def test_a_broken_link_costs_a_second_try_and_no_more(kind: str) -> None:
    lost = Failure(kind, "the cable was cut")
    board = Board("a", [lost])
    assert isinstance(DeviceQueue([board]).submit(job(1)).result().outcome, Observation) and board.ran == ["1", "1"]
    board = Board("a", [lost, lost])
    assert DeviceQueue([board]).submit(job(1)).result().outcome == lost and board.ran == ["1", "1"]
    board = Board("a", [Failure("crash", "SIGSEGV")])
    assert isinstance(DeviceQueue([board]).submit(job(1)).result().outcome, Failure) and board.ran == ["1"]


@pytest.mark.parametrize(("costs", "unit"), [((), INSTRUCTIONS), ((0.0,), INSTRUCTIONS), ((float("nan"),), INSTRUCTIONS), ((1.0,), SECONDS)])
def test_a_device_that_breaks_its_word_is_told(costs: tuple[float, ...], unit: Unit) -> None:
    with pytest.raises(DeviceError, match="device a.*fix the device"):
        DeviceQueue([Board("a", [Observation(costs, unit)])]).submit(job(1)).result()


def test_what_waits_is_forgotten_when_a_run_stops() -> None:
    boards = [Board("a", seconds=0.05), Board("b", seconds=0.05)]
    queue = DeviceQueue(boards)
    for number in range(1, 9):
        queue.submit(job(number))
    queue.stop()
    assert len(boards[0].ran) + len(boards[1].ran) <= 4 and boards[0].closed == boards[1].closed == 1
    assert isinstance(queue.submit(job(9)).result().outcome, Observation)


@pytest.mark.parametrize("outcome", [None, 3.0, Observation(("3",), INSTRUCTIONS), Observation(3.0, INSTRUCTIONS)])  # type: ignore[arg-type]
def test_an_outcome_of_another_kind_is_told(outcome: Observation) -> None:
    with pytest.raises(DeviceError, match="device a gave .*fix the device"):
        DeviceQueue([Board("a", [outcome])]).submit(job(1)).result()


class Raising(Board):
    """Raises, always."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name)
        self._error = error

    def run(self, job: Job) -> Observation | Failure:
        raise self._error


def test_a_device_that_raises_something_else_is_told() -> None:
    with pytest.raises(DeviceError, match="device a raised ValueError: oops; it must return an observation or a failure"):
        DeviceQueue([Raising("a", ValueError("oops"))]).submit(job(1)).result()


def test_the_second_try_is_on_another_device() -> None:
    lost = Failure("link_lost", "the cable was cut")
    boards = [Board("a", [lost] * 9), Board("b")]
    queue = DeviceQueue(boards)
    assert all(isinstance(queue.submit(job(number)).result().outcome, Observation) for number in range(1, 5))
    queue.close()


def test_a_device_that_is_gone_gets_no_more_jobs() -> None:
    said: list[str] = []
    queue = DeviceQueue([Raising("a", DeviceError("no power")), Board("b")], said.append)
    outcomes = [future.result().outcome for future in [queue.submit(job(number)) for number in range(1, 9)]]
    assert all(isinstance(outcome, Observation) for outcome in outcomes) and said == ["device a is left out, b continues: no power"]
    queue.close()


def test_a_device_that_loses_everything_ends_the_run_when_it_is_the_last_one() -> None:
    lost = Failure("reset", "no answer")
    queue = DeviceQueue([board := Board("a", [lost] * MOST_LOST)])
    assert [queue.submit(job(number)).result().outcome for number in (1, 2)] == [lost, lost]
    with pytest.raises(DeviceError, match="device a lost 6 runs in a row, the last one with .*no answer"):
        queue.submit(job(3))
    assert len(board.ran) == MOST_LOST
    with pytest.raises(DeviceError, match="no power"):
        DeviceQueue([Raising("a", DeviceError("no power"))]).submit(job(1))


class Closing(Board):
    """Loses what runs when it is closed."""

    def run(self, job: Job) -> Observation | Failure:
        self.ran.append(job.artifact.symbol)
        before = self.closed
        while self.closed == before:
            time.sleep(0.001)
        return Failure("link_lost", "closed")


def test_what_is_ended_by_stopping_is_not_tried_again() -> None:
    boards = [Closing("a"), Closing("b")]
    queue = DeviceQueue(boards)
    futures = [queue.submit(job(number)) for number in (1, 2)]
    while not boards[0].ran or not boards[1].ran:
        time.sleep(0.001)
    queue.stop()
    assert all(future.done() for future in futures) and len(boards[0].ran) == len(boards[1].ran) == 1


class Unclosable(Closing):
    """Raises when it is closed."""

    def close(self) -> None:
        super().close()
        raise OSError(f"{self.name} is stuck")


@pytest.mark.parametrize("jobs", [0, 3])
@pytest.mark.parametrize("stuck", [{0}, {1}, {2}, {0, 2}])
def test_one_device_that_cannot_be_closed_leaves_no_other_open(stuck: set[int], jobs: int) -> None:
    boards = [(Unclosable if k in stuck else Closing)(str(k)) for k in range(3)]
    queue = DeviceQueue(boards)
    futures = [queue.submit(job(number)) for number in range(jobs)]
    while len([board for board in boards if board.ran]) < jobs:
        time.sleep(0.001)
    with pytest.raises(OSError, match=f"[{''.join(map(str, stuck))}] is stuck"):
        queue.close()
    assert all(board.closed for board in boards) and all(future.done() for future in futures)


def test_a_job_that_waits_for_a_device_does_not_start_when_a_run_stops() -> None:
    begun, closed, left_out = threading.Event(), threading.Event(), threading.Event()

    class Gone(Board):
        def run(self, job: Job) -> Observation | Failure:
            assert begun.wait(60)
            raise DeviceError("unplugged")

    class Slow(Board):
        def run(self, job: Job) -> Observation | Failure:
            self.ran.append(job.artifact.symbol)
            begun.set()
            assert closed.wait(60)
            raise DeviceError("closed")

        def close(self) -> None:
            closed.set()

    slow, said = Slow("slow"), list[str]()

    def say(text: str) -> None:
        said.append(text)
        left_out.set()

    queue = DeviceQueue([slow, Gone("gone")], say)
    futures = [queue.submit(job(1)), queue.submit(job(2))]
    assert left_out.wait(60)
    queue.stop()
    assert len(slow.ran) == 1 and len(said) == 1 and all(future.done() for future in futures)
