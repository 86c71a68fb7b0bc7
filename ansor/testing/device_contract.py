"""Tests that every device must pass, ours and yours.

    from ansor.testing.device_contract import DeviceContract

    class TestMyBoard(DeviceContract):
        target = "arm -mcpu=cortex-a53"

        def open(self):
            return MyBoard("/dev/ttyUSB0")

pytest finds the inherited tests. They run programs of the target on the device: correct ones, wrong ones, and endless ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor import te
from ansor.api import tune_tasks
from ansor.codegen.artifact import Artifact
from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.measure.builder import Builder
from ansor.measure.device import Device, Job, Observation
from ansor.measure.failure import KINDS, Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.record import load
from ansor.measure.reference import measure_task
from ansor.measure.timing import Stopping, TimingOptions
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

SIZE = 24
TIMING = TimingOptions(repeat=2, min_repeat_ms=0.1, stopping=Stopping(contender_repeats=0), timeout_seconds=20.0)


def sums(sign: int = 1, shape: tuple[int, ...] = (SIZE, SIZE)) -> list[Tensor]:
    """C = A + B, or A - B: the same arguments, other values."""
    a, b = te.placeholder(shape, name="A"), te.placeholder(shape, name="B")
    return [a, b, te.compute(shape, lambda *at: a[at] + b[at] if sign > 0 else a[at] - b[at], name="C")]


def product(n: int = SIZE) -> list[Tensor]:
    """C = A B."""
    a, b, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


class DeviceContract:
    """Set the target of the device, and say in `open` how to open it. `trials`: length of the run that is resumed.

    `size`: side of the matrices. `long`: their side in a program that takes long; three of them must fit into the device's memory. Override `sums`, `product`
    and `program` for a device that does not compute with floats, or cannot run plain loops.
    """

    target = "cpu -threads=1"
    trials = 6
    size = SIZE
    long = 192

    def open(self) -> Device:
        """A new device. Each test opens and closes one."""
        raise NotImplementedError("override `open` to open your device")

    def sums(self, sign: int = 1) -> list[Tensor]:
        """C = A + B, or A - B."""
        return sums(sign, (self.size, self.size))

    def product(self, n: int = 0) -> list[Tensor]:
        """C = A B, of matrices n x n, by default of the side `size`."""
        return product(n or self.size)

    def program(self, declared: list[Tensor], entry: str) -> CSource:
        """Any program of a declaration, for the target."""
        return self._target.emit(Sketch(Dag(declared)).lower_row((), entry), entry)

    @pytest.fixture
    def device(self) -> Iterator[Device]:
        """A test's device."""
        device = self.open()
        yield device
        device.close()

    @pytest.fixture
    def builder(self, device: Device) -> Iterator[Builder]:
        """Builds programs in the form that the device runs."""
        with Builder(self._target.toolchain(), device.form, jobs=1, timeout=120) as builder:
            yield builder

    @property
    def _target(self) -> Target:
        return parse_target(self.target)

    def test_it_says_what_it_is(self, device: Device) -> None:
        """It has a name, a model, a unit, and a form that the target's toolchain produces."""
        assert device.name and device.model and device.form in self._target.toolchain().forms()
        assert device.unit == self._target.unit or device.unit.name

    def test_right_programs_have_costs_in_its_unit(self, device: Device, builder: Builder) -> None:
        """Costs are positive; a program that does more costs more."""
        costs = []
        for declaration in (self.sums(), self.product()):
            task, artifact, reference = self._built(builder, declaration, declaration)
            seen = device.run(Job(task, artifact, reference, TIMING))
            assert isinstance(seen, Observation), seen
            assert seen.unit == device.unit and seen.costs and min(seen.costs) > 0 and seen.check
            costs.append(min(seen.costs))
        assert costs[1] > costs[0]

    def test_a_wrong_program_is_found_out_and_the_next_one_runs(self, device: Device, builder: Builder) -> None:
        """The program computes a difference instead of a sum."""
        task, wrong, reference = self._built(builder, self.sums(), self.sums(-1))
        failure = device.run(Job(task, wrong, reference, TIMING))
        assert isinstance(failure, Failure) and failure.kind == "wrong_answer" and failure.kind in KINDS and failure.text
        _, right, _ = self._built(builder, self.sums(), self.sums())
        assert isinstance(device.run(Job(task, right, reference, TIMING)), Observation)

    def test_a_program_that_takes_too_long_is_ended_and_the_next_one_runs(self, device: Device, builder: Builder) -> None:
        """The time limit is too short for any program."""
        task, artifact, reference = self._built(builder, self.product(self.long), self.product(self.long))
        failure = device.run(Job(task, artifact, reference, replace(TIMING, timeout_seconds=1e-4)))
        assert isinstance(failure, Failure) and failure.kind == "timeout", failure
        task, artifact, reference = self._built(builder, self.sums(), self.sums())
        after = device.run(Job(task, artifact, reference, TIMING))
        assert isinstance(after, Observation), after

    def test_it_opens_again_after_it_was_closed(self, device: Device, builder: Builder) -> None:
        """Closing twice is allowed."""
        task, artifact, reference = self._built(builder, self.sums(), self.sums())
        device.close()
        device.close()
        after = device.run(Job(task, artifact, reference, TIMING))
        assert isinstance(after, Observation), after

    def test_a_run_is_recorded_once_and_resumed(self, device: Device, tmp_path: Path) -> None:
        """Recorded trials are not measured again, and none is recorded twice."""
        task, path = SearchTask(tensors=self.product(), target=self._target, name="product"), tmp_path / "trials.jsonl"
        (first,) = tune_tasks([task], trials=self.trials, devices=device, records=path, timing=TIMING)
        assert first.best is not None and first.unit == device.unit
        (second,) = tune_tasks([task], trials=2 * self.trials, devices=device, records=path, timing=TIMING)
        records = load(path).records
        assert second.resumed == first.trials and len(records) == second.trials and second.best is not None and second.best.cost <= first.best.cost
        assert len({(str(record.sketch), record.row) for record in records}) == len(records)
        assert {(record.device, record.unit) for record in records} == {(device.model, device.unit)}

    def _built(self, builder: Builder, declared: list[Tensor], computed: list[Tensor]) -> tuple[MeasureTask, Artifact, Artifact]:
        """The task of a declaration, a program that may compute something else, and the declaration's reference."""
        target, dag = self._target, Dag(declared)
        task = measure_task(dag, target)
        assert task.reference is not None
        program, reference = builder.build([self.program(computed, "candidate"), task.reference])
        assert program.artifact is not None and reference.artifact is not None, (program.failure, reference.failure)
        return task, program.artifact, reference.artifact
