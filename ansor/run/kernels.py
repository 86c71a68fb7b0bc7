"""From a chosen program to something that runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ansor.codegen.building import Toolchain
from ansor.codegen.source import CSource
from ansor.errors import ToolchainError
from ansor.ir.dag import c_identifier
from ansor.ir.simplify import simplified
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.reference import index_ranges
from ansor.run.reporter import Report
from ansor.run.states import Best
from ansor.schedule.sketch import Sketch
from ansor.support.notices import warn
from ansor.support.text import clip
from ansor.targets.unit import SECONDS
from ansor.tasks.task import SearchTask


def schedule_text(task: SearchTask, best: Best) -> str:
    """The chosen program as indented loops."""
    return str(simplified(best.sketch.lower_row(best.row, c_identifier(task.name))))


def built(tasks: Sequence[SearchTask], bests: Sequence[Best], toolchain: Toolchain | None = None, report: Report = warn) -> list[Kernel]:
    """One kernel for each task, built in parallel. A program that does not build is reported and replaced by the plain declaration.

    Raises ToolchainError when that does not build either.
    """
    toolchain = toolchain or (tasks[0].target.toolchain() if tasks else None)
    try:
        kernels = build_kernels([_source(*one) for one in zip(tasks, bests, range(len(tasks)), strict=True)], toolchain)
    except ToolchainError:
        bests = [_buildable(task, best, toolchain, report) for task, best in zip(tasks, bests, strict=True)]
        kernels = build_kernels([_source(*one) for one in zip(tasks, bests, range(len(tasks)), strict=True)], toolchain)
    for kernel, task, best in zip(kernels, tasks, bests, strict=True):
        kernel.name = task.name
        kernel.latency_s = best.cost if np.isfinite(best.cost) and best.unit == SECONDS else None
        kernel.cost, kernel.unit = (best.cost, best.unit) if np.isfinite(best.cost) else (None, best.unit)
        kernel.schedule = schedule_text(task, best)
        kernel.origin, kernel.mcpu, kernel.ranges = best.origin, task.target.mcpu or "native", index_ranges(task.dag)
    return kernels


def _buildable(task: SearchTask, best: Best, toolchain: Toolchain | None, report: Report) -> Best:
    try:
        build_kernels([_source(task, best, 0)], toolchain)
    except ToolchainError as error:
        report(f"{task.name}: the chosen program does not build; using the plain declaration: {clip(str(error), 300)}")
        return Best(Sketch(task.dag), (), math.inf)
    return best


def _source(task: SearchTask, best: Best, number: int) -> CSource:
    entry = c_identifier(f"{task.name}_{number}" if number else task.name)
    return task.source(best.sketch, best.row, entry)
