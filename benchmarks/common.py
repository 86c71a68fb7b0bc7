"""Shared code of the benchmarks: comparing two programs, one thread for all libraries, tables. Interleaved timing is in `ansor.measure.interleaved`."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import provenance
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.ir.input_ranges import input_ranges
from ansor.measure.interleaved import TURN_SECONDS, Ratio, interleaved, ratio
from ansor.measure.kernel import Kernel
from ansor.measure.peak import Peak, measure_peak
from ansor.measure.result_memory import aligned_empty
from ansor.run.kernels import built
from ansor.run.states import Best
from ansor.support.text import format_seconds
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask


def side_by_side(task: SearchTask, ours: Best, theirs: Best, turns: int, limit: float = 10.0) -> tuple[Ratio, float, float]:
    """The speed of one program of a task relative to another, and the median seconds of both. It takes about `limit` seconds at most."""
    kernels = built([task, task], [ours, theirs], CToolchain(find_compiler(task.target.compiler)))
    times = interleaved(calls(task, dict(zip(("ours", "theirs"), kernels, strict=True))), turns, limit, warm=TURN_SECONDS)
    return ratio(times["ours"], times["theirs"]), times["ours"].median, times["theirs"].median


def calls(task: SearchTask, kernels: Mapping[str, Kernel]) -> dict[str, Callable[[], object]]:
    """Calls of kernels of one task on the same random numbers. Constants are bound, and buffers are allocated and aligned, so only the kernels are timed."""
    values = inputs_of(task)
    return {name: _call(kernel, values) for name, kernel in kernels.items()}


def inputs_of(task: SearchTask) -> dict[str, NDArray[np.generic]]:
    """Random numbers for all inputs and constants, the same each time; indices are within bounds."""
    rng, ranges = np.random.default_rng(0), input_ranges(task.dag)
    return {one.name: (rng.random(one.shape) * 2 - 1).astype(one.dtype) if one.dtype.startswith("float") else
            rng.integers(*ranges.get(one.name, (-100, 99)), one.shape, endpoint=True).astype(one.dtype) for one in task.dag.inputs}  # fmt: skip


def _call(kernel: Kernel, values: Mapping[str, NDArray[np.generic]]) -> Callable[[], object]:
    kernel.bind_constants({one.name: values[one.name] for one in kernel.arguments if one.role == "constant"})
    buffers = []
    for one in kernel.arguments:
        buffers.append(kernel.bound_constant(one.name) if one.role == "constant" else aligned_empty(one.shape, one.dtype))
        if one.role == "input":
            buffers[-1][...] = values[one.name]
    workspace = aligned_empty((max(1, kernel.code.workspace_bytes),), "uint8")
    return kernel.prepared([one.ctypes.data for one in buffers], workspace.ctypes.data, [*buffers, workspace])


def use_threads(threads: int) -> None:
    """Make PyTorch use as many threads as we do."""
    import torch

    torch.set_num_threads(threads)


def in_one_thread() -> None:
    """Restart this program with libraries set to one thread: they are loaded by now, and read the setting only while loading."""
    wanted = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


def target_of(given: argparse.Namespace) -> Target:
    """The target of `--target` and `--threads`."""
    return parse_target(f"{given.target} -threads={given.threads}")


def peak_of(target: Target) -> Peak:
    """Measured peak of the target's threads."""
    return measure_peak(find_compiler(target.compiler), vector_bytes=target.vector_bytes, threads=target.threads, mcpu=target.mcpu)


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the module's docstring."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_target(options: argparse.ArgumentParser) -> None:
    """`--target`, `--threads`."""
    options.add_argument("--target", default="cpu", help="target text without threads (default: %(default)s, this machine)")
    options.add_argument("--threads", type=int, default=1, help="threads for us and for PyTorch (default: %(default)s)")


def console() -> Console:
    """The console for tables. Lines to a file or a pipe are not truncated."""
    made = Console(highlight=False)
    if not made.is_terminal:
        made.width = 200
    return made


def table(title: str, first: Sequence[str], numbers: Sequence[str]) -> Table:
    """A plain table: text columns, then columns of numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in first:
        made.add_column(heading)
    for heading in numbers:
        made.add_column(heading, justify="right")
    return made


def geomean(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers, one or more."""
    return math.exp(sum(map(math.log, values)) / len(values))


def machine_line() -> str:
    """Where and when this was measured, and the machine's load: if it is near the number of cores, timings mean little."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{provenance.here()}, load {load:.1f}"


def relative_error(found: object, wanted: object) -> float:
    """The largest difference of a result from the one that is wanted, relative to the largest element of that. Each is one tensor or array."""
    import torch

    one, other = torch.as_tensor(found), torch.as_tensor(wanted)
    return float((one - other).abs().max() / other.abs().max())


def records_at(folder: str | None, name: str) -> Path | None:
    """The record file for a name in the folder of `--records`; None without one."""
    return Path(folder) / f"{name}.jsonl" if folder else None


def short(seconds: float) -> str:
    """Seconds as text."""
    return format_seconds(seconds)
