"""The reference that verifies every program of a declaration: the declaration itself in double precision, as C without a schedule."""

from __future__ import annotations

from dataclasses import replace

from ansor.ir.dag import Dag
from ansor.ir.double import in_double
from ansor.ir.input_ranges import input_ranges
from ansor.measure.measure_task import MeasureTask
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


def measure_task(dag: Dag, target: Target) -> MeasureTask:
    """What all programs of a declaration share: the reference in double precision, and inputs that stay in bounds."""
    double = Dag(in_double(dag.tensors))
    alone = replace(target, hardware=replace(target.hardware, threads=1))
    reference = alone.emit(Sketch(double).lower_row((), "reference"), "reference")
    return MeasureTask(dag.key, reference, dag.reduce_length, _index_ranges(dag), threads=target.threads, rounding=dag.rounding)


def _index_ranges(dag: Dag) -> tuple[tuple[str, float, float], ...]:
    """Integer inputs that decide indices or divisors, with ranges [low, high) that keep indices in bounds and divisors nonzero."""
    return tuple((name, low, high + 1) for name, (low, high) in sorted(input_ranges(dag).items()))
