"""The canary: a program of known cost. Devices with a clock run it between jobs."""

from __future__ import annotations

from pathlib import Path

from ansor import te
from ansor.errors import DeviceError
from ansor.ir.dag import Dag
from ansor.measure.device import Job
from ansor.measure.reference import measure_task
from ansor.measure.timing import Stopping, TimingOptions
from ansor.targets.base import Target

SIZE = 32
BUILD_SECONDS = 120.0
TIMING = TimingOptions(repeat=5, min_repeat_ms=1.0, stopping=Stopping(contender_repeats=0))


def canary_job(target: Target, form: str, folder: Path) -> Job:
    """A job that runs a small matrix product without a schedule, built for a target. Raises DeviceError if it does not build."""
    a, b = te.placeholder((SIZE, SIZE), "float64", name="A"), te.placeholder((SIZE, SIZE), "float64", name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    product = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    task = measure_task(Dag([a, b, product]), target)
    assert task.reference is not None
    made = target.toolchain().build([task.reference], form, folder / "canary", timeout=BUILD_SECONDS)
    if not made.said.ok:
        why = f"the canary program does not build: {made.said.text}"
        raise DeviceError(f"asked for a farm for {target}, but {why}; leave it out with canary=0")
    return Job(task, made.artifacts[0], made.artifacts[0], TIMING)
