"""Batches beside each other: what one forgets, another may still need."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import cast

import pytest

from ansor.codegen.artifact import LIBRARY
from ansor.errors import DeviceError
from ansor.measure.device import Job, Observation
from ansor.measure.device_queue import JobResult
from ansor.measure.failure import Failure
from ansor.measure.flight import FEWEST, Flight, any_can_advance, wait_for_any
from ansor.measure.measurer import Candidate, Measurement, Measurer, text_key
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.te import workloads

pytestmark = pytest.mark.compiler
TASK = SearchTask(workloads.matmul, (16, 16, 16), "cpu -threads=1")


class Late:
    """A device on which every program takes too long."""

    alone, name, model, unit, form = False, "late", "board", INSTRUCTIONS, LIBRARY

    def __init__(self) -> None:
        self.ran = 0

    def run(self, job: Job) -> Observation | Failure:
        self.ran += 1
        return Failure("timeout", "it does not end", counters={"bytes_sent": 8.0})

    def close(self) -> None:
        pass


def candidate(value: int = 0) -> Candidate:
    space = TASK.spaces[0]
    return Candidate(TASK.measure_task, TASK.source(space.sketch, (value, *[0] * (len(space.sizes) - 1)), "one"))


def begun(measurer: Measurer, batch: Sequence[Candidate]) -> Flight:
    flight = Flight(measurer, len(batch))
    flight.add(batch, last=True)
    return flight


def ended(flight: Flight) -> list[Measurement]:
    found: list[Measurement] = []
    while not flight.over:
        wait_for_any([flight])
        found += flight.advance()
    return found


def test_a_batch_keeps_what_another_one_forgets() -> None:
    device, late = Late(), Measurement(failure=Failure("timeout", "it does not end"), unit=INSTRUCTIONS)
    one = candidate()
    with Measurer("cpu -threads=1", [device], jobs=1) as measurer:
        measurer._seen[text_key(one)] = late  # a batch under way has found that
        flight = begun(measurer, [one])
        measurer.forget_accidents([text_key(one)])  # and ends
        (found,) = ended(flight)
        assert found.failure == late.failure and found.folded and not device.ran


def test_what_took_too_long_is_tried_again_by_a_later_batch() -> None:
    device, one = Late(), candidate()
    with Measurer("cpu -threads=1", [device], jobs=1) as measurer:
        for count in (1, 2):
            first, second = ended(begun(measurer, [one, one]))
            assert second.folded and first.failure == second.failure and device.ran == count
            assert first.counters == second.counters == (("bytes_sent", 8.0),)


def test_what_was_measured_before_a_device_died_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Future[JobResult]() for _ in range(3)]
    left = iter(runs)
    for run in runs[:2]:
        run.set_result(JobResult(Observation((1.0,), INSTRUCTIONS), 0.1))
    runs[2].set_exception(DeviceError("it is off"))
    with Measurer("cpu -threads=1", [Late()], jobs=1) as measurer:
        monkeypatch.setattr(measurer.queue, "submit", lambda job: next(left))
        flight = begun(measurer, [candidate(value) for value in range(3)])
        wait([*flight._references.values(), *flight._futures])
        assert len(flight.advance()) == 2
        with pytest.raises(DeviceError, match="it is off"):
            flight.advance()


def test_batches_of_a_task_share_its_reference() -> None:
    device = Late()
    with Measurer("cpu -threads=1", [device], jobs=1) as measurer:
        first, second = (begun(measurer, [candidate(value)]) for value in (0, 1))
        assert list(first._references) == list(second._references) and first._references == second._references
        assert len(ended(second)) == 1 and len(ended(first)) == 1
        assert not begun(measurer, [candidate(2)])._references


def test_a_batch_that_is_stopped_leaves_the_reference_to_the_next() -> None:
    with Measurer("cpu -threads=1", [Late()], jobs=1) as measurer:
        begun(measurer, [candidate()]).end()
        assert len(ended(begun(measurer, [candidate()]))) == 1


def in_parts(measurer: Measurer, *parts: Sequence[Candidate]) -> list[Measurement]:
    """The measurements of a batch that gets its next part when all of the one before is measured."""
    flight, found = Flight(measurer, sum(map(len, parts))), list[Measurement]()
    for number, part in enumerate(parts, 1):
        flight.add(part, last=number == len(parts))
        while len(found) < sum(map(len, parts[:number])):
            assert not flight.over
            wait_for_any([flight])
            found += flight.advance()
    assert flight.over and not any(one.folder.exists() for future in flight._futures for one in future.result())
    return found


class Counting(Late):
    """A device on which each program takes as many instructions as were run before."""

    def run(self, job: Job) -> Observation | Failure:
        self.ran += 1
        return Observation((float(self.ran),), INSTRUCTIONS)


def test_parts_are_measured_before_the_batch_is_known() -> None:
    one, two, three = map(candidate, range(3))
    with Measurer("cpu -threads=1", [Counting()], jobs=1) as measurer:
        found = in_parts(measurer, [one, two], [three], [one], [])
        assert [(seen.cost, seen.folded) for seen in found] == [(1.0, False), (2.0, False), (3.0, False), (1.0, True)]


def test_a_program_of_an_earlier_part_is_built_once() -> None:
    one, two = map(candidate, range(2))
    with Measurer("cpu -threads=1", [Counting()], jobs=1) as measurer:
        other, flight = begun(measurer, [one]), Flight(measurer, 4)
        flight.add([one, two], last=False)
        assert len(ended(other)) == 1  # it knows the first by now
        flight.add([two, one], last=True)
        assert sum(len(future.result()) for future in flight._futures) == 2
        assert [seen.folded for seen in ended(flight)] == [True, False, True, True]


def test_flights_can_advance_once_one_has_what_it_waits_for() -> None:
    waiting, done = Future[None](), Future[None]()
    done.set_result(None)
    flights = [cast(Flight, SimpleNamespace(awaits=awaited)) for awaited in ([waiting], [], [waiting, done])]
    assert not any_can_advance(flights[:1]) and not any_can_advance(flights[:2]) and any_can_advance(flights)
    assert any_can_advance(flights[1:2]) and any_can_advance(())


def test_an_empty_batch_is_over_at_once() -> None:
    with Measurer("cpu -threads=1", [Counting()], jobs=1) as measurer:
        assert begun(measurer, []).over


def test_a_part_is_what_shares_a_call_or_less_while_the_compiler_has_nothing_to_do() -> None:
    with Measurer("cpu -threads=1", [Counting()], jobs=1) as measurer:
        flight, size = Flight(measurer, 100), measurer.builder.group_size(100)
        assert size > FEWEST and [flight.is_part(count) for count in (FEWEST - 1, FEWEST)] == [False, True]
        waiting = begun(measurer, [candidate(value) for value in range(4)])
        assert [flight.is_part(count) for count in (FEWEST, size - 1, size)] == [False, False, True]
        ended(waiting)
        assert flight.is_part(FEWEST)
