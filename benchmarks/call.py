"""The cost of a call: a kernel's C code alone, calls from Python with arrays and with tensors, and the same operator in PyTorch and NumPy.

    python benchmarks/call.py [--threads 1 2] [--repeats 9] [--clock wall]

It prints microseconds per call: the minimum and the median of several series of calls. NumPy arrays have two columns: as NumPy allocates them, and aligned, as
kernels return them and use them without a copy. Programs are picked without measuring. `--clock cpu` counts processor time of all threads, for a busy machine.
NumPy uses the threads that it was started with.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from common import console, machine_line, parser, table, use_threads
from numpy.typing import NDArray

import ansor
from ansor.codegen.pool_library import shared_pool
from ansor.codegen.source import Argument
from ansor.codegen.toolchain import cached_library, find_compiler
from ansor.measure.kernel import Kernel
from ansor.measure.result_memory import aligned_empty

Array = NDArray[np.generic]
ROW_SECONDS = 0.02
"""The approximate time of a series of calls."""
WORK: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("16 x 16 x 16", "matmul", (16, 16, 16)), ("64 x 64 x 64", "matmul", (64, 64, 64)), ("256 x 256 x 256", "matmul", (256, 256, 256)),
    ("convolution 3x3, 14 x 14, 64 to 64", "conv2d", (1, 14, 14, 64, 64)),
)  # fmt: skip
REPEAT = """
void repeat(void (*kernel)(void *const *, void *, void *, void *), void *const *args, void *workspace, void *parallel_for, void *pool, long calls) {
    for (long k = 0; k < calls; k++) kernel(args, workspace, parallel_for, pool);
}
"""
Row = Callable[[int], object]


def in_a_row(call: Callable[[], object]) -> Row:
    """A series of calls from Python."""

    def row(calls: int) -> None:
        for _ in range(calls):
            call()

    return row


def bare(kernel: Kernel, values: list[Array]) -> Row:
    """A series of calls from C."""
    library = ctypes.CDLL(str(cached_library(find_compiler(), "repeat", REPEAT)))
    library.repeat.argtypes, library.repeat.restype = [ctypes.c_void_p] * 5 + [ctypes.c_long], None
    given = iter(values)
    buffers = [_buffer(kernel, one, given) for one in kernel.arguments]
    addresses = (ctypes.c_void_p * len(buffers))(*(one.ctypes.data for one in buffers))
    workspace = aligned_empty((max(1, kernel.code.workspace_bytes),), "uint8")
    pool = shared_pool(kernel.code.threads) if kernel.code.threads > 1 else None
    rest = (workspace.ctypes.data, pool.parallel_for if pool else None, pool.handle if pool else None)
    keep = (buffers, workspace)
    return lambda calls, _keep=keep: library.repeat(ctypes.cast(kernel._function, ctypes.c_void_p), addresses, *rest, calls)  # type: ignore[misc]


def _buffer(kernel: Kernel, argument: Argument, given: Iterator[Array]) -> Array:
    if argument.role == "input":
        return aligned(next(given))
    return kernel.bound_constant(argument.name) if argument.role == "constant" else aligned_empty(argument.shape, argument.dtype)


def aligned(value: Array) -> Array:
    """An aligned copy, which kernels use without another copy."""
    copy = aligned_empty(value.shape, value.dtype.name)
    copy[...] = value
    return copy


def ways(name: str, kernel: Kernel) -> dict[str, Row]:
    """The series of calls to compare, by heading. Constants are bound."""
    rng = np.random.default_rng(0)
    every = {one.name: rng.random(one.shape, dtype=np.float32) for one in kernel.arguments if one.role != "output"}
    constants = {one.name: every[one.name] for one in kernel.arguments if one.role == "constant"}
    kernel.bind_constants(constants)
    values = [value for one, value in every.items() if one not in constants]
    tensors, straight = [torch.from_numpy(one).clone() for one in values], [aligned(one) for one in values]
    filled = kernel(*straight)
    found = {"C alone": bare(kernel, values), "NumPy": in_a_row(lambda: kernel(*values)), "aligned": in_a_row(lambda: kernel(*straight)),
             "torch": in_a_row(lambda: kernel(*tensors)), "out=": in_a_row(lambda: kernel(*straight, out=filled))}  # fmt: skip
    if name == "matmul":
        return found | {"torch.mm": in_a_row(lambda: torch.mm(*tensors)), "numpy @": in_a_row(lambda: values[0] @ values[1])}
    data, weight = (one.permute(order).contiguous() for one, order in zip(map(torch.from_numpy, every.values()), ((0, 3, 1, 2), (3, 2, 0, 1)), strict=True))
    return found | {"conv2d of torch": in_a_row(lambda: torch.nn.functional.conv2d(data, weight, padding=1))}


def measured(rows: dict[str, Row], repeats: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Microseconds per call in each series; the ways alternate."""
    counts, times = {}, {name: [] for name in rows}  # type: dict[str, int], dict[str, list[float]]
    for name, row in rows.items():
        row(3)  # the first two calls are slow: they build what is needed once
        start = time.perf_counter()
        row(10)
        counts[name] = max(10, round(ROW_SECONDS / ((time.perf_counter() - start) / 10)))
    for _ in range(repeats):
        for name, row in rows.items():
            row(counts[name] // 10)
            start = clock()
            row(counts[name])
            times[name].append((clock() - start) / counts[name] * 1e6)
    return times


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads of kernels and of PyTorch (default: 1 and 2)")
    options.add_argument("--repeats", type=int, default=9, help="series of calls for each way (default: %(default)s)")
    options.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="wall time or processor time (default: %(default)s)")
    given = options.parse_args()
    out, clock = console(), time.perf_counter if given.clock == "wall" else time.process_time
    headings = ["C alone", "NumPy", "aligned", "torch", "out=", "torch.mm", "conv2d of torch", "numpy @"]
    for threads in given.threads:
        use_threads(threads)
        shown = table(f"threads: {threads}; microseconds per call, minimum / median of {given.repeats}", ["work"], headings)
        for title, name, sizes in WORK:
            kernel = ansor.auto_schedule(name, sizes, f"cpu -threads={threads}", trials=0)
            assert isinstance(kernel, Kernel)
            times = measured(ways(name, kernel), given.repeats, clock)
            shown.add_row(title, *(f"{min(times[one]):.2f} / {statistics.median(times[one]):.2f}" if one in times else "" for one in headings))
        out.print(shown)
    out.print(machine_line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
