"""Makes the reference that verifies every program of a declaration: the declaration itself in double precision, as unscheduled C.

A declaration with long sums also gets a plain program, which computes it in its own dtypes: its errors widen the bound of `ansor.measure.verify`.
"""

from __future__ import annotations

from dataclasses import replace

from ansor.codegen.source import CSource
from ansor.ir.access import has_reduction
from ansor.ir.dag import Dag
from ansor.ir.double import in_double
from ansor.ir.input_ranges import input_ranges
from ansor.measure.measure_task import MeasureTask
from ansor.measure.verify import MEASURED_FROM
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


def measure_task(dag: Dag, target: Target) -> MeasureTask:
    """The task that all programs of a declaration share, with the double-precision reference and input ranges that keep indices in bounds."""
    alone = replace(target, hardware=replace(target.hardware, threads=1))
    double = _without_schedule(Dag(in_double(dag.tensors)), alone, "reference")
    reference = replace(double, plain=_without_schedule(dag, alone, "plain") if _has_long_sums(dag) else None)
    return MeasureTask(dag.key, reference, dag.reduce_length, index_ranges(dag), threads=target.threads, rounding=dag.rounding)


def _without_schedule(dag: Dag, target: Target, entry: str) -> CSource:
    return target.emit(Sketch(dag).lower_row((), entry), entry)


def _has_long_sums(dag: Dag) -> bool:
    """Whether float32 sums may be off by more than their number of terms suggests."""
    return not dag.rounding and dag.reduce_length >= MEASURED_FROM and any(one.dtype == "float32" and has_reduction(one) for one in dag.stages)


def index_ranges(dag: Dag) -> tuple[tuple[str, float, float], ...]:
    """Integer inputs that determine indices or divisors, with ranges [low, high) that keep indices in bounds and divisors nonzero."""
    return tuple((name, low, high + 1) for name, (low, high) in sorted(input_ranges(dag).items()))
