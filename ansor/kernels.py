"""From a chosen program to something that runs: one kernel, or the kernel of a group in a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiler
from ansor.ir.dag import c_identifier
from ansor.ir.printer import loops_text
from ansor.ir.simplify import simplified
from ansor.measure.kernel import Kernel, aligned_empty, build_kernels
from ansor.task import SearchTask
from ansor.tuning import Best

Array = NDArray[np.generic]


def schedule_text(task: SearchTask, best: Best) -> str:
    """The chosen program as indented loops."""
    return loops_text(simplified(best.sketch.lower_row(best.row, c_identifier(task.name))))


def built(tasks: Sequence[SearchTask], bests: Sequence[Best], compiler: Compiler | None = None) -> list[Kernel]:
    """One kernel for each task, built side by side. Raises ToolchainError when one does not build."""
    sources = [_source(task, best, number) for number, (task, best) in enumerate(zip(tasks, bests, strict=True))]
    mcpu = tasks[0].target.mcpu if tasks else "native"
    kernels = build_kernels(sources, compiler, mcpu=mcpu)
    for kernel, task, best in zip(kernels, tasks, bests, strict=True):
        kernel.latency_s = best.seconds if np.isfinite(best.seconds) else None
        kernel.schedule = schedule_text(task, best)
    return kernels


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
            if argument.pack is not None:
                array = _aligned(argument.pack.apply(array))
            held.append(array)
            addresses.append(array.ctypes.data)
        return self.kernel.prepared(addresses, workspace.ctypes.data, held)


def _aligned(array: Array) -> Array:
    copy = aligned_empty(array.shape, array.dtype.name)
    copy[...] = array
    return copy
