"""The reference that verifies every program of a declaration: the declaration itself in double precision, as C without a schedule.

Long sums have a plain program beside it, the declaration in its own dtypes: `ansor.measure.verify` allows errors that it makes too.
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
    """What all programs of a declaration share: the reference in double precision, and inputs that stay in bounds."""
    alone = replace(target, hardware=replace(target.hardware, threads=1))
    double = _without_schedule(Dag(in_double(dag.tensors)), alone, "reference")
    reference = replace(double, plain=_without_schedule(dag, alone, "plain") if _has_long_sums(dag) else None)
    return MeasureTask(dag.key, reference, dag.reduce_length, _index_ranges(dag), threads=target.threads, rounding=dag.rounding)


def _without_schedule(dag: Dag, target: Target, entry: str) -> CSource:
    return target.emit(Sketch(dag).lower_row((), entry), entry)


def _has_long_sums(dag: Dag) -> bool:
    """Whether sums in float32 may be off by more than their number of terms tells."""
    return not dag.rounding and dag.reduce_length >= MEASURED_FROM and any(one.dtype == "float32" and has_reduction(one) for one in dag.stages)


def _index_ranges(dag: Dag) -> tuple[tuple[str, float, float], ...]:
    """Integer inputs that decide indices or divisors, with ranges [low, high) that keep indices in bounds and divisors nonzero."""
    return tuple((name, low, high + 1) for name, (low, high) in sorted(input_ranges(dag).items()))
