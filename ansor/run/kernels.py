"""From a chosen program to something that runs: one kernel, or the kernel of a group in a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiler
from ansor.errors import ToolchainError
from ansor.ir.dag import c_identifier
from ansor.ir.printer import loops_text
from ansor.ir.simplify import simplified
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.result_memory import aligned_empty
from ansor.run.tuning import Best, Report
from ansor.schedule.sketch import Sketch
from ansor.support.notices import warn
from ansor.support.text import clip
from ansor.tasks.task import SearchTask

Array = NDArray[np.generic]


def schedule_text(task: SearchTask, best: Best) -> str:
    """The chosen program as indented loops."""
    return loops_text(simplified(best.sketch.lower_row(best.row, c_identifier(task.name))))


def built(tasks: Sequence[SearchTask], bests: Sequence[Best], compiler: Compiler | None = None, report: Report = warn) -> list[Kernel]:
    """One kernel for each task, built side by side; one that does not build is replaced by the declaration as it stands, and said.

    Raises ToolchainError when that does not build either.
    """
    mcpu = tasks[0].target.mcpu if tasks else "native"
    try:
        kernels = build_kernels([_source(*one) for one in zip(tasks, bests, range(len(tasks)), strict=True)], compiler, mcpu=mcpu)
    except ToolchainError:
        bests = [_buildable(task, best, compiler, report) for task, best in zip(tasks, bests, strict=True)]
        kernels = build_kernels([_source(*one) for one in zip(tasks, bests, range(len(tasks)), strict=True)], compiler, mcpu=mcpu)
    for kernel, task, best in zip(kernels, tasks, bests, strict=True):
        kernel.name = task.name
        kernel.latency_s = best.seconds if np.isfinite(best.seconds) else None
        kernel.schedule = schedule_text(task, best)
        kernel.origin = best.origin
    return kernels


def _buildable(task: SearchTask, best: Best, compiler: Compiler | None, report: Report) -> Best:
    try:
        build_kernels([_source(task, best, 0)], compiler, mcpu=task.target.mcpu)
    except ToolchainError as error:
        report(f"{task.name}: the chosen program does not build, the plain declaration serves: {clip(str(error), 300)}")
        return Best(Sketch(task.dag), (), math.inf)
    return best


def _source(task: SearchTask, best: Best, number: int) -> CSource:
    entry = c_identifier(f"{task.name}_{number}" if number else task.name)
    return task.source(best.sketch, best.row, entry)


class NetworkKernel:
    """A built kernel as `ansor.graph.kernels.GroupKernel`: packs constants once, then each call is one call into C."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.workspace_bytes = kernel.code.workspace_bytes

    def prepare(self, arrays: Sequence[Array], workspace: NDArray[np.uint8]) -> Callable[[], object]:
        """See `GroupKernel.prepare`."""
        held: list[Array] = [workspace]
        addresses = []
        for argument, array in zip(self.kernel.arguments, arrays, strict=True):
            if not argument.as_given:
                array = _aligned(argument.physical(array))
            held.append(array)
            addresses.append(array.ctypes.data)
        return self.kernel.prepared(addresses, workspace.ctypes.data, held)


def _aligned(array: Array) -> Array:
    copy = aligned_empty(array.shape, array.dtype.name)
    copy[...] = array
    return copy
